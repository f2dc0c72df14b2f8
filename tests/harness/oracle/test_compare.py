"""Protects the comparison of outputs, and the arena's check of changed inputs and guard zones."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness import Mismatch
from harness.worker.kit.arena import Arena, open_arguments
from harness.worker.oracle.comparison import mismatch_wording
from harness.worker.oracle.comparison.compare import compare, quantization_metrics
from suites import QuantizationTolerance, Tolerance

pytestmark = pytest.mark.judge
INF, NAN = math.inf, math.nan


def mismatch_of(
    got: torch.Tensor,
    expected: torch.Tensor,
    *,
    rtol: float = 1e-3,
    atol: float = 1e-3,
    quantization: QuantizationTolerance | None = None,
    dtype: torch.dtype | None = None,
) -> Mismatch | None:
    return compare(
        got,
        expected,
        case="c",
        output="out",
        dtype=dtype or got.dtype,
        tolerance=Tolerance(rtol=rtol, atol=atol),
        quantization=quantization,
    ).mismatch


def floats(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


@pytest.mark.parametrize(
    ("got", "expected", "wrong"),
    [
        ((1.0, 2.0), (1.0, 2.0), 0),
        ((1.0005, 2.0), (1.0, 2.0), 0),
        ((1.0, 2.1), (1.0, 2.0), 1),
        ((NAN, 2.0), (1.0, 2.0), 1),
        ((1.0, 2.0), (NAN, 2.0), 1),
        ((NAN, 2.0), (NAN, 2.0), 0),
        ((INF, -INF), (INF, -INF), 0),
        ((INF, INF), (INF, -INF), 1),
        ((1e30, 1.0), (INF, 1.0), 1),
        ((NAN, NAN), (1.0, 2.0), 2),
    ],
)
def test_values_nan_and_infinity_are_compared_by_position(
    got: tuple[float, ...], expected: tuple[float, ...], wrong: int
) -> None:
    mismatch = mismatch_of(floats(*got), floats(*expected).double())
    assert (0 if mismatch is None else round(mismatch.wrong_share * len(got))) == wrong


def test_value_beyond_dtype_range_is_expected_as_infinity() -> None:
    expected = torch.tensor([1e5, 1.0], dtype=torch.float64)
    assert mismatch_of(torch.tensor([INF, 1.0], dtype=torch.float16), expected) is None
    assert mismatch_of(torch.tensor([6e4, 1.0], dtype=torch.float16), expected) is not None


def test_mismatch_names_first_wrong_element_and_largest_errors() -> None:
    expected = torch.arange(12, dtype=torch.float64).reshape(3, 4)
    got = expected.float()
    got[1, 2] += 0.5
    got[2, 3] -= 2
    mismatch = mismatch_of(got, expected)
    assert (mismatch.index, mismatch.expected, mismatch.got) == ((1, 2), "6", "6.5")
    assert mismatch.max_abs == 2.0
    assert mismatch.used == pytest.approx(2 / (1e-3 + 1e-3 * 11))
    assert mismatch.largest_error == "2, 167 times the tolerance"
    assert mismatch.wrong_share == pytest.approx(2 / 12)


def test_right_finite_values_have_no_largest_error_beside_a_nan() -> None:
    mismatch = mismatch_of(floats(1.0001, NAN), torch.ones(2, dtype=torch.float64))
    assert (mismatch.nan_got, mismatch.nan_expected, mismatch.largest_error) == (1, 0, "")
    assert "1 NaN where 0 are expected" in mismatch_wording.mismatch(mismatch).message
    assert "1.0001" not in mismatch_wording.mismatch(mismatch).message.partition("\n")[0]


def test_integers_must_be_equal_and_dtype_and_shape_must_match() -> None:
    whole = torch.tensor([1, 2, 3])
    assert mismatch_of(whole, whole.clone()) is None
    assert mismatch_of(whole, torch.tensor([1, 2, 4])) is not None
    wrong_dtype = mismatch_of(whole.float(), whole.double(), dtype=torch.float16)
    assert (wrong_dtype.dtype, wrong_dtype.expected_dtype) == ("float32", "float16")
    shorter = mismatch_of(floats(1.0), torch.ones(2, dtype=torch.float64))
    assert (shorter.shape, shorter.expected_shape) == ((1,), (2,))


def test_quantized_output_is_compared_by_three_metrics() -> None:
    limits = QuantizationTolerance(cosine_min=0.999, relative_l1_max=0.01, rmse_max=0.01)
    expected = torch.linspace(-3, 3, 100, dtype=torch.float64)
    near = (expected * 1.005).float()
    assert mismatch_of(near, expected, rtol=0, atol=0, quantization=limits) is None
    far = mismatch_of((expected * 1.05).float(), expected, quantization=limits)
    assert far.metrics["relative_l1"] == pytest.approx(0.05, rel=1e-3)
    assert far.metrics["cosine"] == pytest.approx(1.0)
    with_nan = near.clone()
    with_nan[3] = NAN
    assert mismatch_of(with_nan, expected, quantization=limits) is not None
    assert quantization_metrics(torch.zeros(4), torch.zeros(4), torch.float16)["cosine"] == 1.0
    assert quantization_metrics(torch.ones(4), torch.zeros(4), torch.float16)["rmse"] == INF


@given(st.lists(st.floats(width=32), min_size=1, max_size=20), st.integers(0, 19))
def test_equal_output_passes_and_changed_element_is_found(values: list[float], place: int) -> None:
    got = floats(*values)
    assert mismatch_of(got, got.double(), rtol=0, atol=0) is None
    changed = got.clone()
    index = place % len(values)
    changed[index] = 1.0 if not changed[index].isfinite() or changed[index] != 1.0 else 2.0
    mismatch = mismatch_of(changed, got.double(), rtol=0, atol=0)
    assert mismatch.index == (index,)


def test_arena_reports_changed_inputs_and_broken_guards() -> None:
    inputs = {
        "x": torch.arange(6.0).reshape(2, 3).t(),
        "n": 3,
        "y": torch.ones(5, dtype=torch.int8),
        "z": torch.empty(0),
    }
    arena = Arena(inputs)
    opened = open_arguments(arena.descriptor, arena.size_bytes, arena.arguments)
    assert torch.equal(opened["x"], inputs["x"])
    assert opened["x"].stride() == inputs["x"].stride()
    assert (opened["n"], opened["z"].numel()) == (3, 0)
    assert opened["y"].untyped_storage().nbytes() == 5
    assert opened["x"].data_ptr() % 64 == 0
    assert (arena.changed(), arena.broken_guards()) == ((), ())
    opened["y"][0] = 7
    assert arena.changed() == ("y",)
    beyond = torch.frombuffer(arena._memory, dtype=torch.int8)
    x = arena.arguments["x"]
    beyond[x.offset_bytes + x.storage_bytes] = 1
    assert arena.broken_guards() == ("past the end of `x`",)
    del beyond
    arena.close()


@pytest.mark.parametrize(("got", "is_right"), [(0.0, True), (1e-3, True), (3e-3, False), (NAN, False)])
def test_where_all_expected_values_are_0_the_unit_is_that_of_the_inputs(
    got: float, *, is_right: bool
) -> None:
    compared = compare(
        floats(0.0, got),
        floats(0.0, 0.0),
        case="c",
        output="out",
        dtype=torch.float32,
        tolerance=Tolerance(rtol=1e-3, scale=1e-3),
        quantization=None,
        inputs={"x": floats(2.0, -2.0, 0.0, INF), "n": 3},
    )
    assert (compared.mismatch is None) is is_right
