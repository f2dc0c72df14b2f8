"""Protects the values that hidden cases add to inputs: outliers, special values, degenerate rows and masks."""

from __future__ import annotations

import pytest
import torch

from harness.cases.judged_case import FAR, RowKind
from harness.worker.oracle.inputs.distributions import (
    inject_degenerate,
    inject_mask,
    inject_outliers,
    inject_special,
)

pytestmark = pytest.mark.judge


def outlier_places(shape: tuple[int, ...], seed: int, dtype: str = "float32") -> list[tuple[int, ...]]:
    """Indices of a tensor of ones that became 50; all other elements must still be 1."""
    inputs = {"x": torch.ones(shape, dtype=getattr(torch, dtype)), "y": torch.ones(3)}
    inject_outliers(inputs, ["x"], torch.Generator().manual_seed(seed))
    assert torch.equal(inputs["y"], torch.ones(3))
    assert set(inputs["x"].flatten().tolist()) <= {1.0, 50.0}
    return [tuple(place) for place in (inputs["x"] == 50).nonzero().tolist()]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", [(1,), (3,), (999,), (7, 100), (2, 3, 5), (4, 1)])
def test_outliers_include_the_last_tile(shape: tuple[int, ...], seed: int) -> None:
    last_row = tuple(size - 1 for size in shape[:-1])
    places = outlier_places(shape, seed)
    assert any(place[:-1] == last_row and place[-1] >= shape[-1] - 64 for place in places)


def test_a_thousandth_of_elements_are_outliers() -> None:
    assert 290 <= len(outlier_places((300, 1000), seed=1)) <= 300
    assert len(outlier_places((10, 100), seed=1, dtype="float16")) == 1


def test_outlier_places_depend_on_seed() -> None:
    assert outlier_places((100, 100), seed=1) == outlier_places((100, 100), seed=1)
    assert outlier_places((100, 100), seed=1) != outlier_places((100, 100), seed=2)


def test_outliers_of_empty_tensor_pass_and_of_number_raise() -> None:
    assert outlier_places((0, 4), seed=1) == []
    assert outlier_places((), seed=1) == [()]
    with pytest.raises(TypeError, match="eps is no tensor"):
        inject_outliers({"eps": 1e-5}, ["eps"], torch.Generator())


@pytest.mark.parametrize("shape", [(7,), (1, 5), (6, 4), (2, 3, 4), (3,)])
def test_special_values_occur_once_and_one_row_is_minus_infinity(shape: tuple[int, ...]) -> None:
    for seed in range(20):
        x = torch.zeros(shape)
        inject_special({"x": x, "n": 3}, ("x", "n"), torch.Generator().manual_seed(seed))
        low = x.reshape(-1, shape[-1]) == -torch.inf
        whole = low.all(dim=1)
        assert (int(x.isnan().sum()), int((x == torch.inf).sum()), int(low[~whole].sum())) == (1, 1, 1)
        assert int(whole.sum()) == (len(shape) > 1 and len(low) > 3)
        if len(low) >= 3:
            assert int((~x.reshape(-1, shape[-1])[~whole].isfinite()).any(dim=1).sum()) == 3, (
                "in separate rows"
            )


def test_one_input_alone_has_a_row_of_minus_infinity() -> None:
    inputs = {"weight": torch.ones(9), "x": torch.ones(6, 9), "y": torch.ones(6, 9)}
    inject_special(inputs, inputs, torch.Generator().manual_seed(1))
    assert [bool((inputs[name] == -torch.inf).all(dim=-1).any()) for name in inputs] == [False, True, False]


def test_one_element_gets_each_special_value_for_some_seed() -> None:
    seen = set()
    for seed in range(32):
        inputs = {"x": torch.ones(1)}
        inject_special(inputs, inputs, torch.Generator().manual_seed(seed))
        seen.add(str(inputs["x"].item()))
    assert seen == {"nan", "inf", "-inf"}


@pytest.mark.parametrize("dtype", ["float32", "float16", "float8_e4m3fn"])
def test_each_degenerate_row_kind_changes_one_row(dtype: str) -> None:
    kinds = len(RowKind)
    drawn = torch.randn(kinds + 3, 48, generator=torch.Generator().manual_seed(1)).to(getattr(torch, dtype))
    inputs = {"x": drawn.clone(), "labels": torch.arange(5)}
    inject_degenerate(inputs, ["x", "labels"], torch.Generator().manual_seed(2))
    before, after = drawn.float(), inputs["x"].float()
    assert torch.isfinite(after).all()
    same = (before == after).all(dim=1)
    assert int(same.sum()) == 3
    changed = after[~same]
    assert int((changed == 0).all(dim=1).sum()) == 1
    far = 110 if dtype != "float8_e4m3fn" else 50  # in 8 bits, a row lies at an eighth of the largest value
    assert int((changed < -far).all(dim=1).sum()) == 1
    assert int((changed > far).all(dim=1).sum()) == 1
    sizes = changed.abs().amax(dim=1)
    assert int(((sizes > 0) & (sizes < 0.1)).sum()) == 2  # the row of equal values and the row of tiny values
    assert int(((changed == 0).sum(dim=1) == 24).sum()) == 1


@pytest.mark.parametrize("row", [[0.0] * 9, [3.0] * 9, [1e-30, 2e-30, 3e-30], [1e4, -1e4, 0.5], [7.0]])
def test_rows_moved_far_from_zero_are_far_for_any_values(row: list[float]) -> None:
    for kind, sign in zip(FAR, (-1, 1), strict=True):
        inputs = {"x": torch.tensor([row])}
        inject_degenerate(inputs, ["x"], torch.Generator().manual_seed(1), [kind])
        assert bool((sign * inputs["x"] > 110).all()), kind
        assert len(row) < 2 or float(inputs["x"].std()) > 1


def test_vector_rows_are_runs_and_equal_shapes_change_at_same_places() -> None:
    inputs = {name: torch.ones(16 * 20) for name in ("x", "y")} | {"ragged": torch.ones(17)}
    inject_degenerate(inputs, inputs, torch.Generator().manual_seed(1))
    runs = {name: (inputs[name].view(-1, 16) != 1).any(dim=1) for name in ("x", "y")}
    assert int(runs["x"].sum()) == len(RowKind)
    assert torch.equal(runs["x"], runs["y"])
    assert torch.equal(inputs["ragged"], torch.ones(17))


def test_mask_covers_first_half_of_last_row() -> None:
    inputs = {"weight": torch.ones(9), "x": torch.ones(2, 3, 8), "y": torch.ones(3, 8)}
    inject_mask(inputs, inputs)
    assert torch.equal(inputs["x"].isinf().nonzero(), torch.tensor([[1, 2, at] for at in range(4)]))
    assert torch.equal(inputs["y"], torch.ones(3, 8))
    alone = {"x": torch.ones(1, 8)}
    inject_mask(alone, alone)
    assert torch.equal(alone["x"], torch.ones(1, 8))
