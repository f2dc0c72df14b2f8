"""Protects the stirring of timed inputs: inputs change in each call, and the last values are the original values."""

from __future__ import annotations

import pytest
import torch

from harness.worker.kit.arena import lay_out
from harness.worker.timer.input_copies import InputCopies, Stirrer
from tests.support.timing.host_memory import host_memory

__all__ = ["host_memory"]
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
STIRRED = ("x", "narrow", "vector", "eighth", "many")


@pytest.fixture
def copies(host_memory: None) -> InputCopies:
    """Three copies of inputs of many kinds in host memory, with random bytes in and around them."""
    inputs = {name: torch.zeros(shape).to(dtype) for name, (shape, dtype) in SHAPES.items()}
    arguments, size_bytes = lay_out({**inputs, "across": torch.zeros(41, 300).T, "eps": 1e-5})
    made = InputCopies(arguments, size_bytes, 3)
    made.fill(torch.randint(0, 120, (size_bytes,), dtype=torch.uint8))
    return made


def all_bytes(copies: InputCopies) -> list[bytes]:
    return [memory.numpy().tobytes() for memory in copies.memory]


def test_every_row_changes_in_each_call_and_is_restored(copies: InputCopies) -> None:
    before = all_bytes(copies)
    arguments = copies.arguments[1]
    originals = {name: arguments[name].clone() for name in ("x", "many", "vector", "narrow")}
    stirrer = Stirrer()
    seen = set()
    for _ in range(20):
        stirrer.stir(copies.fractional_rows(1))
        assert bool((arguments["x"] != originals["x"]).any(dim=1).all())
        assert bool((arguments["many"] != originals["many"]).any(dim=1).sum() > 2000)
        assert int((arguments["vector"] != originals["vector"]).sum()) == 1
        assert int((arguments["narrow"] != originals["narrow"]).sum()) == 1
        seen.add(copies.memory[1].numpy().tobytes())
    assert len(seen) > 10
    assert [copy == was for copy, was in zip(all_bytes(copies), before, strict=True)] == [True, False, True]
    stirrer.settle()
    assert all_bytes(copies) == before


def test_all_copies_of_a_graph_change_at_once_and_are_restored(copies: InputCopies) -> None:
    before = all_bytes(copies)
    stirrer = Stirrer()
    stirrer.stir(copies.fractional_rows())
    assert all(copy != was for copy, was in zip(all_bytes(copies), before, strict=True))
    assert len({*all_bytes(copies)}) == 1  # the copies had the same values
    stirrer.settle()
    assert all_bytes(copies) == before


def test_integers_and_guard_zones_are_not_stirred(copies: InputCopies) -> None:
    before = torch.frombuffer(bytearray(all_bytes(copies)[0]), dtype=torch.uint8)
    Stirrer().stir(copies.fractional_rows(0))
    changed = copies.memory[0] != before
    first = copies.memory[0].data_ptr()
    for name in STIRRED:
        value = copies.arguments[0][name]
        start = value.data_ptr() - first
        changed[start : start + value.numel() * value.element_size()] = False
    assert not bool(changed.any())
