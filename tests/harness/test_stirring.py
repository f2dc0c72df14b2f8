"""Inputs of timed calls: others in each call, and as they were in the end."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harness.worker.timing.stirring import MOST_ROWS, Stirrer

pytestmark = pytest.mark.judge
CPU = torch.device("cpu")
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
    """One buffer and the arguments in it, as a timer holds them."""
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


def test_rows_are_others_in_each_call_and_all_is_put_back() -> None:
    memory, arguments = laid_out()
    before, x, many = memory.clone(), arguments["x"].clone(), arguments["many"].clone()
    stirrer = Stirrer(CPU)
    stirrer.draw(arguments, memory, 20)
    seen = set()
    for _ in range(20):
        stirrer.stir(memory)
        assert int((arguments["x"] != x).sum()) == 300
        assert bool((arguments["x"] != x).any(dim=1).all())
        assert 0 < int((arguments["many"] != many).any(dim=1).sum()) <= MOST_ROWS
        seen.add(memory.numpy().tobytes())
    assert len(seen) == 20
    stirrer.settle()
    assert torch.equal(memory, before)


def test_whole_numbers_and_what_lies_between_inputs_stay() -> None:
    memory, arguments = laid_out()
    weight, zones = arguments["weight"].clone(), memory[:256].clone()
    stirrer = Stirrer(CPU)
    stirrer.draw(arguments, memory, 1)
    stirrer.stir(memory)
    assert torch.equal(arguments["weight"], weight)
    assert torch.equal(memory[:256], zones)


def test_another_copy_is_stirred_by_what_was_drawn_for_one() -> None:
    memory, arguments = laid_out()
    other = memory.clone()
    stirrer = Stirrer(CPU)
    stirrer.draw(arguments, memory, 2)
    stirrer.stir(other)
    assert not torch.equal(other, memory)
    stirrer.stir(memory)
    stirrer.settle()
    assert torch.equal(other, memory)


def test_a_seed_of_the_candidates_makes_no_call_like_another() -> None:
    memory, arguments = laid_out()
    stirrer = Stirrer(CPU)
    found = []
    for _ in range(2):
        torch.manual_seed(1)
        stirrer.draw(arguments, memory, 1)
        stirrer.stir(memory)
        found.append(memory.clone())
    assert not torch.equal(*found)


def test_nothing_to_stir_is_no_matter() -> None:
    memory, arguments = laid_out()
    stirrer = Stirrer(CPU)
    stirrer.draw({"weight": arguments["weight"], "eps": 1.0}, memory, 3)
    before = memory.clone()
    stirrer.stir(memory)
    stirrer.settle()
    assert torch.equal(memory, before)
