"""Protects error bounds of an element: by value, dtype, reduction length and device; margins; 8-bit floats."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.worker.oracle.comparison import bounds
from harness.worker.oracle.comparison.compare import OutputComparison, compare
from suites import QuantizationTolerance, Tolerance

pytestmark = pytest.mark.judge
E4M3 = {"float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0}
SPACED = (
    "float16",
    "bfloat16",
    "float32",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
)


def compare_out(
    got: torch.Tensor,
    expected: torch.Tensor,
    tolerance: Tolerance = Tolerance(),  # noqa: B008
    *,
    quantization: QuantizationTolerance | None = None,
    terms: int = 1,
    tf32: bool = False,
) -> OutputComparison:
    return compare(
        got,
        expected,
        case="c",
        output="out",
        dtype=got.dtype,
        tolerance=tolerance,
        quantization=quantization,
        terms=terms,
        tf32=tf32,
    )


def doubles(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


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
    assert compare_out(got, expected, Tolerance(ulps=0.5)).mismatch is None
    unit = bounds.spacing(expected, dtype)
    off = (got.double() + 2 * unit).to(dtype)
    # Above a power of two the spacing is wider, and `off` may be rounded back.
    assume(bool((off.double() - expected).abs() > unit))
    assert compare_out(off, expected, Tolerance(ulps=1.0)).mismatch is not None


def test_margin_is_share_and_index_of_worst_element() -> None:
    expected = torch.ones(3, 4, dtype=torch.float64)
    got = expected.float()
    got[1, 2] += 0.0625
    got[2, 0] -= 0.03125
    (margin,) = compare_out(got, expected, Tolerance(atol=0.125)).margins
    assert (margin.measure, margin.used, margin.index) == ("elementwise", 0.5, (1, 2))
    (wrong,) = compare_out(got, expected, Tolerance(atol=0.03125)).margins
    assert wrong.used == 2.0
    (exact,) = compare_out(expected.float(), expected, Tolerance()).margins
    assert (exact.measure, exact.used, exact.index) == ("exact", 0.0, ())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_or_infinity_mismatch_has_no_margin(bad: float) -> None:
    comparison = compare_out(torch.tensor([1.0, bad]), doubles(1.0, 2.0), Tolerance(atol=0.5))
    assert comparison.mismatch is not None
    assert comparison.margins == ()


def test_integers_beyond_float_range_are_compared_exactly() -> None:
    large = torch.tensor([1 << 60, 5])
    off = torch.tensor([(1 << 60) + 1, 5])
    mismatch = compare_out(off, large, Tolerance()).mismatch
    assert (mismatch.expected, mismatch.got) == (str(1 << 60), str((1 << 60) + 1))
    assert compare_out(large.clone(), large, Tolerance()).margins[0].measure == "exact"


def test_largest_float16_and_infinity_are_equal_at_range_border() -> None:
    """65519 rounds to the largest float16, 65521 to infinity: a float32 sum may fall on either side."""
    tolerance = Tolerance(rtol=1e-3)
    for expected in (65519.0, 65521.0):
        for got in (65504.0, math.inf):
            assert compare_out(torch.tensor([got]).half(), doubles(expected), tolerance).mismatch is None, (
                expected,
                got,
            )
    assert compare_out(torch.tensor([-math.inf]).half(), doubles(65521.0), tolerance).mismatch is not None
    assert compare_out(torch.tensor([65504.0]).half(), doubles(70000.0), tolerance).mismatch is not None
    assert compare_out(torch.tensor([math.inf]).half(), doubles(60000.0), tolerance).mismatch is not None


@pytest.mark.parametrize("terms", [64, 4096])
def test_accumulation_bound_grows_with_root_of_reduction_length(terms: int) -> None:
    """A float32 sum is within the bound at any length, a float16 sum is not."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(256, terms, generator=generator, dtype=torch.float64).to(torch.float16)
    expected = x.double().sum(dim=1)
    tolerance = Tolerance(accumulation=8.0, reduction="k")
    in_order = x.float().cumsum(dim=1)[:, -1]
    (margin,) = compare_out(in_order, expected, tolerance, terms=terms).margins
    assert 0 < margin.used < 1
    narrow = torch.zeros(256, dtype=torch.float16)
    for column in range(terms):
        narrow += x[:, column]
    assert compare_out(narrow.float(), expected, tolerance, terms=terms).mismatch is not None


def test_tf32_passes_only_if_task_and_device_allow_it() -> None:
    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randn(64, 64, generator=generator) for _ in "ab")
    expected = a.double() @ b.double()

    def truncated(x: torch.Tensor) -> torch.Tensor:
        return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)

    got = truncated(a) @ truncated(b)
    strict, lenient = Tolerance(rtol=1e-5, atol=1e-5), Tolerance(rtol=1e-5, atol=1e-5, tf32=True)
    assert compare_out(got, expected, lenient, tf32=True).mismatch is None
    assert compare_out(got, expected, lenient, tf32=False).mismatch is not None
    assert compare_out(got, expected, strict, tf32=True).mismatch is not None
    assert compare_out(got.half().float(), expected, lenient, tf32=True).mismatch is None
    assert compare_out(torch.zeros(64, 64), expected, lenient, tf32=True).mismatch is not None


def test_worst_max_finds_one_wrong_element_in_quantized_output() -> None:
    generator = torch.Generator().manual_seed(5)
    expected = torch.randn(512, 512, generator=generator, dtype=torch.float64)
    got = expected.float()
    got[511, 511] = 0.0
    expected[511, 511] = 1.0
    limits = QuantizationTolerance(cosine_min=0.99, relative_l1_max=0.01, rmse_max=0.01)
    assert compare_out(got, expected, quantization=limits).mismatch is None
    bounded = msgspec.structs.replace(limits, worst_max=0.1)
    assert compare_out(got, expected, quantization=bounded).mismatch is not None


def test_worst_max_accepts_rounding_of_large_row() -> None:
    generator = torch.Generator().manual_seed(6)
    expected = torch.randn(4096, 64, generator=generator, dtype=torch.float64)
    expected[7] *= 400.0
    limits = QuantizationTolerance(cosine_min=0.99999, relative_l1_max=3e-3, rmse_max=3e-3, worst_max=0.001)

    rounded = expected.half()
    assert float((rounded.double() - expected).abs().max()) > 0.01 * float(expected.square().mean().sqrt())
    assert compare_out(rounded, expected, quantization=limits).mismatch is None
    off = rounded.clone()
    off[4095, 63] += 0.1
    assert compare_out(off, expected, quantization=limits).mismatch is not None


@pytest.mark.parametrize(("name", "largest"), E4M3.items())
def test_eight_bit_float_neighbour_is_wrong(name: str, largest: float) -> None:
    dtype = getattr(torch, name)
    expected = doubles(0.0, 2.0**-9, 0.9, -17.0, 100.0, largest)
    right = expected.clamp(-largest, largest).to(dtype)
    assert compare_out(right, expected, Tolerance(ulps=0.5)).mismatch is None
    neighbour = doubles(0.0, 2.0**-9, 0.8125, -17.0, 100.0, largest).to(dtype)
    wrong = compare_out(neighbour, expected, Tolerance(ulps=0.6)).mismatch
    assert wrong.index == (2,)
