"""Protects the comparison of outputs and its error bounds, and the arena's check of changed inputs and guard zones."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from harness import Mismatch
from harness.worker.kit.arena import Arena, open_arguments
from harness.worker.oracle.comparison import bounds, mismatch_wording
from harness.worker.oracle.comparison.compare import OutputComparison, compare, quantization_metrics
from suites import QuantizationTolerance, Tolerance

pytestmark = pytest.mark.judge
INF, NAN = math.inf, math.nan
EXACT, THOUSANDTH = Tolerance(), Tolerance(rtol=1e-3, atol=1e-3)
SPACED = (
    "float16",
    "bfloat16",
    "float32",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
)


def compared(
    got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance = THOUSANDTH, **options: Any
) -> OutputComparison:
    usual: dict[str, Any] = {"case": "c", "output": "out", "dtype": got.dtype, "quantization": None}
    return compare(got, expected, tolerance=tolerance, **usual | options)


def mismatch_of(
    got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance = THOUSANDTH, **options: Any
) -> Mismatch | None:
    return compared(got, expected, tolerance, **options).mismatch


def floats(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


def doubles(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


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
    mismatch = mismatch_of(floats(*got), doubles(*expected))
    assert (0 if mismatch is None else round(mismatch.wrong_share * len(got))) == wrong


@pytest.mark.parametrize(
    ("got", "expected", "is_right"),
    [
        *((got, expected, True) for got in (65504.0, INF) for expected in (65519.0, 65521.0)),
        (-INF, 65521.0, False),
        (65504.0, 70000.0, False),
        (INF, 60000.0, False),
        (INF, 1e5, True),
    ],
)
def test_largest_float16_and_infinity_are_equal_at_the_border_of_its_range(
    got: float, expected: float, *, is_right: bool
) -> None:
    """65519 rounds to the largest float16, 65521 to infinity: a float32 sum may fall on either side."""
    mismatch = mismatch_of(torch.tensor([got]).half(), doubles(expected), Tolerance(rtol=1e-3))
    assert (mismatch is None) is is_right


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
    comparison = compared(floats(1.0001, NAN), doubles(1.0, 1.0))
    mismatch = comparison.mismatch
    assert (mismatch.nan_got, mismatch.nan_expected, mismatch.largest_error) == (1, 0, "")
    assert comparison.margins == ()
    assert "1 NaN where 0 are expected" in mismatch_wording.mismatch(mismatch).message
    assert "1.0001" not in mismatch_wording.mismatch(mismatch).message.partition("\n")[0]


def test_integers_must_be_equal_and_dtype_and_shape_must_match() -> None:
    large = torch.tensor([1 << 60, 5])
    assert compared(large.clone(), large, EXACT).margins[0].measure == "exact"
    mismatch = mismatch_of(large + torch.tensor([1, 0]), large, EXACT)
    assert (mismatch.expected, mismatch.got) == (str(1 << 60), str((1 << 60) + 1))
    wrong_dtype = mismatch_of(large.float(), large.double(), dtype=torch.float16)
    assert (wrong_dtype.dtype, wrong_dtype.expected_dtype) == ("float32", "float16")
    shorter = mismatch_of(floats(1.0), doubles(1.0, 1.0))
    assert (shorter.shape, shorter.expected_shape) == ((1,), (2,))


def test_margin_is_share_and_index_of_worst_element() -> None:
    expected = torch.ones(3, 4, dtype=torch.float64)
    got = expected.float()
    got[1, 2] += 0.0625
    got[2, 0] -= 0.03125
    (margin,) = compared(got, expected, Tolerance(atol=0.125)).margins
    assert (margin.measure, margin.used, margin.index) == ("elementwise", 0.5, (1, 2))
    (wrong,) = compared(got, expected, Tolerance(atol=0.03125)).margins
    assert wrong.used == 2.0
    (exact,) = compared(expected.float(), expected, EXACT).margins
    assert (exact.measure, exact.used, exact.index) == ("exact", 0.0, ())


@given(st.lists(st.floats(width=32), min_size=1, max_size=20), st.integers(0, 19))
def test_equal_output_passes_and_changed_element_is_found(values: list[float], place: int) -> None:
    got = floats(*values)
    assert mismatch_of(got, got.double(), EXACT) is None
    changed = got.clone()
    index = place % len(values)
    changed[index] = 1.0 if not changed[index].isfinite() or changed[index] != 1.0 else 2.0
    assert mismatch_of(changed, got.double(), EXACT).index == (index,)


@pytest.mark.parametrize("name", SPACED)
def test_spacing_is_distance_to_next_value(name: str) -> None:
    """Compares with decoded bits: every finite value of 8-bit floats, a sweep of wider dtypes."""
    dtype = getattr(torch, name)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[dtype.itemsize]
    count = 127 if dtype.itemsize == 1 else 2000
    first = torch.arange(count) if dtype.itemsize == 1 else torch.arange(1, 1 << 14, 8)[:count]
    first = first * (1 if dtype.itemsize < 4 else 1 << 16)
    value = first.to(bits).view(dtype).double()
    following = (first + 1).to(bits).view(dtype).double()
    finite = value.isfinite() & following.isfinite()
    assert int(finite.sum()) > 100
    assert torch.equal(bounds.spacing(value, dtype)[finite], (following - value)[finite])


@given(st.floats(min_value=-400, max_value=400), st.sampled_from(SPACED))
def test_correct_rounding_passes_and_two_units_off_fails(value: float, name: str) -> None:
    dtype = getattr(torch, name)
    expected = doubles(value).clamp(-200, 200)
    got = expected.to(dtype)
    assert mismatch_of(got, expected, Tolerance(ulps=0.5)) is None
    unit = bounds.spacing(expected, dtype)
    off = (got.double() + 2 * unit).to(dtype)
    # Above a power of two the spacing is wider, and `off` may be rounded back.
    assume(bool((off.double() - expected).abs() > unit))
    assert mismatch_of(off, expected, Tolerance(ulps=1.0)) is not None


@pytest.mark.parametrize("terms", [64, 4096])
def test_accumulation_bound_grows_with_root_of_reduction_length(terms: int) -> None:
    """A float32 sum is within the bound at any length, a float16 sum is not."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(256, terms, generator=generator, dtype=torch.float64).to(torch.float16)
    expected = x.double().sum(dim=1)
    tolerance = Tolerance(accumulation=8.0, reduction="k")
    in_order = x.float().cumsum(dim=1)[:, -1]
    (margin,) = compared(in_order, expected, tolerance, terms=terms).margins
    assert 0 < margin.used < 1
    narrow = torch.zeros(256, dtype=torch.float16)
    for column in range(terms):
        narrow += x[:, column]
    assert mismatch_of(narrow.float(), expected, tolerance, terms=terms) is not None


def test_tf32_passes_only_if_task_and_device_allow_it() -> None:
    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randn(64, 64, generator=generator) for _ in "ab")
    cut_a, cut_b = ((x.view(torch.int32) & ~0x1FFF).view(torch.float32) for x in (a, b))
    expected, got = a.double() @ b.double(), cut_a @ cut_b
    strict, lenient = Tolerance(rtol=1e-5, atol=1e-5), Tolerance(rtol=1e-5, atol=1e-5, tf32=True)
    assert mismatch_of(got, expected, lenient, tf32=True) is None
    assert mismatch_of(got.half().float(), expected, lenient, tf32=True) is None
    assert mismatch_of(got, expected, lenient, tf32=False) is not None
    assert mismatch_of(got, expected, strict, tf32=True) is not None
    assert mismatch_of(torch.zeros(64, 64), expected, lenient, tf32=True) is not None


def test_quantized_output_is_compared_by_three_metrics() -> None:
    limits = QuantizationTolerance(cosine_min=0.999, relative_l1_max=0.01, rmse_max=0.01)
    expected = torch.linspace(-3, 3, 100, dtype=torch.float64)
    near = (expected * 1.005).float()
    assert mismatch_of(near, expected, EXACT, quantization=limits) is None
    far = mismatch_of((expected * 1.05).float(), expected, quantization=limits)
    assert far.metrics["relative_l1"] == pytest.approx(0.05, rel=1e-3)
    assert far.metrics["cosine"] == pytest.approx(1.0)
    near[3] = NAN
    assert mismatch_of(near, expected, quantization=limits) is not None
    assert quantization_metrics(torch.zeros(4), torch.zeros(4), torch.float16)["cosine"] == 1.0
    assert quantization_metrics(torch.ones(4), torch.zeros(4), torch.float16)["rmse"] == INF


def test_worst_max_finds_one_wrong_element_and_accepts_the_rounding_of_a_large_row() -> None:
    expected = torch.randn(4096, 64, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    expected[7] *= 400.0
    bounded = QuantizationTolerance(cosine_min=0.99999, relative_l1_max=3e-3, rmse_max=3e-3, worst_max=0.001)
    rounded = expected.half()
    assert float((rounded.double() - expected).abs().max()) > 0.01 * float(expected.square().mean().sqrt())
    assert mismatch_of(rounded, expected, EXACT, quantization=bounded) is None
    rounded[4095, 63] += 0.1
    assert mismatch_of(rounded, expected, EXACT, quantization=bounded) is not None
    unbounded = msgspec.structs.replace(bounded, worst_max=None)
    assert mismatch_of(rounded, expected, EXACT, quantization=unbounded) is None


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
    inputs = {"x": floats(2.0, -2.0, 0.0, INF), "n": 3}
    mismatch = mismatch_of(
        floats(0.0, got), floats(0.0, 0.0), Tolerance(rtol=1e-3, scale=1e-3), inputs=inputs
    )
    assert (mismatch is None) is is_right
