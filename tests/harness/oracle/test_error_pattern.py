"""The pattern of wrong elements in words: place, neighbours, early rounding."""

from __future__ import annotations

import pytest
import torch

from harness.worker.oracle.comparison.compare import compare
from suites import Tolerance

pytestmark = pytest.mark.judge


def pattern_of(
    got: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype = torch.float32
) -> tuple[str, ...]:
    compared = compare(
        got.to(dtype),
        expected.double(),
        case="c",
        output="out",
        dtype=dtype,
        tolerance=Tolerance(rtol=1e-5, atol=1e-6),
        quantization=None,
    )
    return compared.mismatch.pattern


def table(rows: int = 8, columns: int = 24) -> torch.Tensor:
    return torch.arange(1.0, rows * columns + 1).reshape(rows, columns)


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        (slice(None), slice(16, None), "wrong elements: the last 8 of 24 columns (16..23), in every row"),
        (slice(None), slice(0, 1), "wrong elements: the first column (0 of 0..23), in every row"),
        (slice(None), slice(5, 6), "wrong elements: only column (5 of 0..23), in every row"),
        (
            slice(None),
            slice(0, None, 4),
            "wrong elements: every 4th column of 24, from 0 to 20, in every row",
        ),
        (slice(6, None), slice(None), "wrong elements: the last 2 of 8 rows (6..7), from end to end"),
        (slice(7, None), slice(20, None), "the last 4 of 24 columns (20..23), in the last row (7 of 0..7)"),
        (slice(None), slice(None), "each is -1000"),
    ],
)
def test_place_of_the_wrong_elements_is_in_rows_and_columns(rows: slice, columns: slice, words: str) -> None:
    got = table()
    got[rows, columns] = -1000.0
    assert words in pattern_of(got, table())[0]


def test_wrong_element_is_shown_with_its_neighbours() -> None:
    got = table()
    got[3, 16:] = 0.0
    assert pattern_of(got, table())[1] == "at [3, 14..18] expected 87 88 89 90 91, got 87 88 0 0 0"
    vector = torch.ones(100)
    vector[96:] = 7.0
    assert pattern_of(vector, torch.ones(100)) == (
        "wrong elements: the last 4 of 100 elements (96..99)",
        "at [94..98] expected 1 1 1 1 1, got 1 1 7 7 7",
    )


@pytest.mark.parametrize(
    ("narrow", "name"), [(torch.bfloat16, "bfloat16"), (torch.float16, "float16 or TF32")]
)
def test_early_rounding_is_not_called_a_place(narrow: torch.dtype, name: str) -> None:
    torch.manual_seed(0)
    expected = torch.randn(16, 200)
    [rounding, _] = pattern_of(expected.to(narrow).float(), expected)
    assert (
        f"about the size of one rounding to {name}: is an intermediate value rounded too early?" in rounding
    )


def test_wrong_scale_is_not_called_rounding() -> None:
    torch.manual_seed(0)
    expected = torch.randn(16, 200)
    assert pattern_of(expected * 1.1, expected)[0] == ("each is 1.1 times the expected value")


def test_sum_with_one_term_too_many_is_not_called_rounding() -> None:
    """A softmax with padded lanes that load 0 instead of -inf: each row is a little too small by its own factor."""
    x = 3 * torch.randn(32, 1000, generator=torch.Generator().manual_seed(0))
    expected = x.softmax(1)
    exponentials = (x - x.amax(1, keepdim=True)).exp()
    padded = 24 * (-x.amax(1, keepdim=True)).exp()
    got = exponentials / (exponentials.sum(1, keepdim=True) + padded)
    assert "round" not in pattern_of(got, expected)[0]
    noise = 1 + 1e-7 * torch.randn(32, 1000, generator=torch.Generator().manual_seed(1))
    got[:12] = expected[:12] * noise[:12]
    assert "round" not in pattern_of(got, expected)[0], "the last bits of right rows go both ways"
    rounded = exponentials.bfloat16().float() / exponentials.sum(1, keepdim=True)
    assert "one rounding to bfloat16" in pattern_of(rounded, expected)[0]


def test_integer_cast_and_wrong_formula_are_told_apart() -> None:
    torch.manual_seed(0)
    expected = 5 * torch.randn(16, 200)
    assert "a cast to an integer?" in pattern_of(expected.to(torch.int8).float(), expected)[0]
    assert "each is" not in pattern_of(expected + expected.roll(1), expected)[0]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (
            (..., 0, slice(None)),
            "all wrong elements have index 0 of axis 2 in shape [2, 4, 8, 64]; every element there is wrong",
        ),
        (
            (..., slice(0, None, 2), slice(61, None)),
            "have every 2nd index from 0 to 6 of axis 2, indices 61..63 of axis 3 in",
        ),
        ((slice(None), [0, 2, 3]), "all wrong elements have 3 indices (0, 2, 3) of axis 1 in shape"),
        ((1, 0, 3, 17), "one element is wrong in shape [2, 4, 8, 64]"),
        ((1, 3, 7, slice(60, None)), "index 7 of axis 2, indices 60..63 of axis 3"),
    ],
)
def test_place_keeps_the_axes_of_a_tensor_with_many(index: tuple[object, ...], words: str) -> None:
    expected = torch.randn(2, 4, 8, 64, generator=torch.Generator().manual_seed(0))
    got = expected.clone()
    got[index] += 1 + got[index].abs()
    assert words in pattern_of(got, expected)[0]


def test_tail_over_all_axes_is_named() -> None:
    expected = torch.ones(2, 4, 8, 64)
    got = expected.clone()
    got.view(-1)[-100:] = 3.0
    words = (
        "the last 100 of 4096 elements (3996..4095), counted over all axes in shape [2, 4, 8, 64]; each is 3"
    )
    assert pattern_of(got, expected)[0] == f"wrong elements: {words}"


def test_inputs_of_a_wrong_element_are_shown_if_they_have_its_shape() -> None:
    x, weight = torch.tensor([[1.0, -2.5], [3.0, 4.0]]), torch.ones(2)
    got = x.relu()
    got[0, 1] = -2.5
    compared = compare(
        got,
        x.relu().double(),
        case="c",
        output="out",
        dtype=torch.float32,
        tolerance=Tolerance(),
        quantization=None,
        inputs={"x": x, "weight": weight, "eps": 1.0},
    )
    assert compared.mismatch.pattern[-1] == "inputs at [0, 1]: x = -2.5"
