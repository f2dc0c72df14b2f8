"""Protects the stirring of timed inputs: inputs change in each call, and the last values are the original values."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harness.worker.timer.stirring import Stirrer

pytestmark = pytest.mark.judge
SHAPES = {
    "x": ((300, 41), torch.float32),
    "narrow": ((64, 1), torch.float16),
    "vector": ((1000,), torch.bfloat16),
    "weight": ((5, 7), torch.int8),
    "eighth": ((8, 16), torch.float8_e4m3fn),
    "alone": ((), torch.float32),
    "empty": ((0, 4), torch.float32),
    "many": ((3000, 4), torch.float32),
}


def laid_out() -> tuple[torch.Tensor, dict[str, Any]]:
    """One buffer and the arguments in it, in a timer's layout."""
    memory = torch.zeros(1 << 17, dtype=torch.uint8)
    memory[:] = torch.randint(0, 120, (1 << 17,), dtype=torch.uint8)
    arguments: dict[str, Any] = {"eps": 1e-5}
    at = 256
    for name, (shape, dtype) in SHAPES.items():
        size = torch.Size(shape).numel() * dtype.itemsize
        arguments[name] = memory[at : at + size].view(dtype).view(shape)
        at += size + 256 - size % 256
    arguments["across"] = arguments["x"].T
    return memory, arguments


def test_every_row_changes_in_each_call_and_is_restored() -> None:
    memory, arguments = laid_out()
    before = memory.clone()
    originals = {name: arguments[name].clone() for name in ("x", "many", "vector", "narrow")}
    stirrer = Stirrer([arguments])
    seen = set()
    for _ in range(20):
        stirrer.stir(0)
        assert bool((arguments["x"] != originals["x"]).any(dim=1).all())
        assert bool((arguments["many"] != originals["many"]).any(dim=1).sum() > 2000)
        assert int((arguments["vector"] != originals["vector"]).sum()) == 1
        assert int((arguments["narrow"] != originals["narrow"]).sum()) == 1
        seen.add(memory.numpy().tobytes())
    assert len(seen) > 10
    stirrer.settle()
    assert torch.equal(memory, before)


def test_integers_and_guard_zones_are_not_stirred() -> None:
    memory, arguments = laid_out()
    weight, zones = arguments["weight"].clone(), memory[:256].clone()
    Stirrer([arguments]).stir(0)
    assert torch.equal(arguments["weight"], weight)
    assert torch.equal(memory[:256], zones)
