"""Protects neighbour inputs, which differ only in their middle, and tensors that are passed under two names."""

from __future__ import annotations

import pytest
import torch

from harness.worker.kit.arena import Arena, open_arguments
from harness.worker.oracle.inputs.neighbours import alike, with_other_middle

pytestmark = pytest.mark.judge


@pytest.mark.parametrize("kind", ["sorted", "symmetric", "integers"])
def test_structured_inputs_keep_their_middle(kind: str) -> None:
    def make() -> torch.Tensor:
        square = torch.randn(6, 6)
        return {
            "sorted": torch.randn(9).sort().values,
            "symmetric": square @ square.T,
            "integers": torch.randint(9, (6, 6)),
        }[kind]

    x, y = make(), make()
    x = (x + x.T) / 2 if kind == "symmetric" else x
    assert with_other_middle({"x": x}, {"x": y})["x"] is x


def test_alike_inputs_have_equal_shape_and_float_dtype() -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    inputs = {"x": x, "y": y, "wide": x.double(), "turned": x.T, "eps": 1e-5, "at": x.int()}
    assert alike(inputs | {"to": x.int()}) == [("x", "y")]


def test_tensor_under_two_names_is_opened_once() -> None:
    x, y = torch.randn(5), torch.randn(5)
    arena = Arena({"x": x, "again": x, "y": y, "n": 1, "m": 1})
    opened = open_arguments(arena.descriptor, arena.size_bytes, arena.arguments)
    assert opened["x"] is opened["again"]
    assert opened["x"].data_ptr() != opened["y"].data_ptr()
    assert (torch.equal(opened["x"], x), torch.equal(opened["y"], y)) == (True, True)
    opened["again"][2] += 1
    assert arena.changed() == ("x", "again")
    arena.close()
