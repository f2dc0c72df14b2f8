"""Inputs of timed calls: others in each call, and as they were in the end."""

from __future__ import annotations

import pytest
import torch

from harness.worker.timing.stirring import Stirrer

pytestmark = pytest.mark.judge
CPU = torch.device("cpu")


def inputs() -> dict[str, object]:
    return {
        "x": torch.randn(300, 41),
        "narrow": torch.randn(64, 1).half(),
        "vector": torch.randn(1000).bfloat16(),
        "weight": torch.randint(-127, 127, (5, 7), dtype=torch.int8),
        "eighth": torch.randn(8, 16).to(torch.float8_e4m3fn),
        "alone": torch.tensor(3.0),
        "empty": torch.empty(0, 4),
        "across": torch.randn(6, 9).T,
        "eps": 1e-5,
    }


def raw(given: dict[str, object]) -> list[bytes]:
    tensors = [one for one in given.values() if isinstance(one, torch.Tensor)]
    return [one.reshape(-1).view(torch.uint8).numpy().tobytes() if one.numel() else b"" for one in tensors]


def test_each_row_is_another_one_in_each_call_and_all_is_put_back() -> None:
    given = inputs()
    before, x = raw(given), given["x"]
    assert isinstance(x, torch.Tensor)
    known = x.clone()
    stirrer = Stirrer(CPU)
    seen = set()
    for _ in range(20):
        stirrer.stir(given)
        assert bool((x != known).any(dim=1).all())
        assert int((x != known).sum()) == 300
        seen.add(x.numpy().tobytes())
    assert len(seen) == 20
    stirrer.settle()
    assert raw(given) == before


def test_whole_numbers_stay_as_they_are() -> None:
    given = inputs()
    weight = given["weight"]
    assert isinstance(weight, torch.Tensor)
    known = weight.clone()
    Stirrer(CPU).stir(given)
    assert torch.equal(weight, known)


def test_a_seed_of_the_candidates_makes_no_call_like_another() -> None:
    x = torch.randn(300, 41)
    stirrer = Stirrer(CPU)
    torch.manual_seed(1)
    stirrer.stir({"x": x})
    first = x.clone()
    torch.manual_seed(1)
    stirrer.stir({"x": x})
    assert not torch.equal(x, first)
