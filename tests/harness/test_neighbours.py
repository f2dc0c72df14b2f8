"""Inputs that differ in their middle alone."""

from __future__ import annotations

import pytest
import torch

from harness.worker.kit.arena import Arena, open_arguments
from harness.worker.oracle.neighbours import alike, with_other_middle

pytestmark = pytest.mark.judge


@pytest.mark.parametrize("made", ["sorted", "symmetric", "whole"])
def test_what_hangs_together_is_left_alone(made: str) -> None:
    def make() -> torch.Tensor:
        square = torch.randn(6, 6)
        return {
            "sorted": torch.randn(9).sort().values,
            "symmetric": square @ square.T,
            "whole": torch.randint(9, (6, 6)),
        }[made]

    x, y = make(), make()
    x = (x + x.T) / 2 if made == "symmetric" else x
    assert with_other_middle({"x": x}, {"x": y})["x"] is x


def test_inputs_that_could_be_one_tensor_hold_fractions_in_one_shape() -> None:
    one, other = torch.randn(3, 4), torch.randn(3, 4)
    inputs = {"x": one, "y": other, "wide": one.double(), "turned": one.T, "eps": 1e-5, "at": one.int()}
    assert alike(inputs | {"to": one.int()}) == [("x", "y")]


def test_a_tensor_under_two_names_is_one_tensor_for_who_is_called() -> None:
    x, y = torch.randn(5), torch.randn(5)
    arena = Arena({"x": x, "again": x, "y": y, "n": 1, "m": 1})
    opened = open_arguments(arena.descriptor, arena.size_bytes, arena.arguments)
    assert opened["x"] is opened["again"]
    assert opened["x"].data_ptr() != opened["y"].data_ptr()
    assert (torch.equal(opened["x"], x), torch.equal(opened["y"], y)) == (True, True)
    opened["again"][2] += 1
    assert arena.changed() == ("x", "again")
    arena.close()
