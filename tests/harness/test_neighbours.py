"""Inputs that differ in their middle alone."""

from __future__ import annotations

import pytest
import torch

from harness.worker.judge.neighbours import with_other_middle

pytestmark = pytest.mark.judge


def test_one_row_in_the_middle_is_the_others() -> None:
    x, y = torch.randn(7, 5), torch.randn(7, 5)
    mixed = with_other_middle({"x": x, "eps": 1e-5}, {"x": y, "eps": 1e-5})
    got = mixed["x"]
    assert isinstance(got, torch.Tensor)
    assert torch.equal(got[3], y[3])
    assert torch.equal(got[[0, 1, 2, 4, 5, 6]], x[[0, 1, 2, 4, 5, 6]])
    assert mixed["eps"] == 1e-5


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
