"""How far an element may be off: by values, by the output's dtype, by reduction length and by device; margins; 8-bit floats."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.wire.evaluation import Mismatch
from harness.worker.oracle import bounds
from harness.worker.oracle.compare import Comparison, compare
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


def judged(
    got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, *, terms: int = 1, tf32: bool = False
) -> Comparison:
    return compare(
        got,
        expected,
        case="c",
        output="out",
        dtype=got.dtype,
        tolerance=tolerance,
        quantization=None,
        terms=terms,
        tf32=tf32,
    )


def doubles(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("name", SPACED)
def test_the_spacing_is_that_of_neighbouring_values(name: str) -> None:
    """Every finite value of the 8-bit floats, a sweep of the wider ones; against the values that the bits stand for."""
    dtype = getattr(torch, name)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[dtype.itemsize]
    count = 127 if dtype.itemsize == 1 else 2000
    first = torch.arange(count) if dtype.itemsize == 1 else torch.arange(1, 1 << 14, 8)[:count]
    first = first * (1 if dtype.itemsize < 4 else 1 << 16)
    value = first.to(bits).view(dtype).double()
    following = (first + 1).to(bits).view(dtype).double()
    known = value.isfinite() & following.isfinite()
    assert int(known.sum()) > 100
    assert torch.equal(bounds.spacing(value, dtype)[known], (following - value)[known])


@given(st.floats(min_value=-400, max_value=400), st.sampled_from(SPACED))
def test_a_right_rounding_is_within_half_a_unit_and_two_units_off_is_wrong(value: float, name: str) -> None:
    dtype = getattr(torch, name)
    expected = doubles(value).clamp(-200, 200)
    got = expected.to(dtype)
    assert judged(got, expected, Tolerance(ulps=0.5)).mismatch is None
    unit = bounds.spacing(expected, dtype)
    off = (got.double() + 2 * unit).to(dtype)
    assume(
        bool((off.double() - expected).abs() > unit)
    )  # above a power of two values lie further apart, and it is rounded back
    assert judged(off, expected, Tolerance(ulps=1.0)).mismatch is not None


def test_the_margin_is_the_worst_elements_share_with_its_place() -> None:
    expected = torch.ones(3, 4, dtype=torch.float64)
    got = expected.float()
    got[1, 2] += 0.0625
    got[2, 0] -= 0.03125
    (margin,) = judged(got, expected, Tolerance(atol=0.125)).margins
    assert (margin.measure, margin.used, margin.index) == ("elementwise", 0.5, (1, 2))
    (wrong,) = judged(got, expected, Tolerance(atol=0.03125)).margins
    assert wrong.used == 2.0
    (exact,) = judged(expected.float(), expected, Tolerance()).margins
    assert (exact.measure, exact.used, exact.index) == ("exact", 0.0, ())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_wrong_by_nan_or_infinity_has_no_margin(bad: float) -> None:
    found = judged(torch.tensor([1.0, bad]), doubles(1.0, 2.0), Tolerance(atol=0.5))
    assert found.mismatch is not None
    assert found.margins == ()


def test_integers_beyond_what_floats_hold_are_told_apart() -> None:
    large = torch.tensor([1 << 60, 5])
    off = torch.tensor([(1 << 60) + 1, 5])
    found = judged(off, large, Tolerance()).mismatch
    assert found is not None
    assert (found.expected, found.got) == (str(1 << 60), str((1 << 60) + 1))
    assert judged(large.clone(), large, Tolerance()).margins[0].measure == "exact"


def test_either_side_of_the_border_of_the_range_is_right_within_the_tolerance() -> None:
    """65519 rounds to the largest float16, 65521 to infinity: a float32 sum may fall on either side."""
    tolerance = Tolerance(rtol=1e-3)
    for expected in (65519.0, 65521.0):
        for got in (65504.0, math.inf):
            assert judged(torch.tensor([got]).half(), doubles(expected), tolerance).mismatch is None, (
                expected,
                got,
            )
    assert judged(torch.tensor([-math.inf]).half(), doubles(65521.0), tolerance).mismatch is not None
    assert judged(torch.tensor([65504.0]).half(), doubles(70000.0), tolerance).mismatch is not None
    assert judged(torch.tensor([math.inf]).half(), doubles(60000.0), tolerance).mismatch is not None


@pytest.mark.parametrize("terms", [64, 4096])
def test_accumulation_grows_with_the_root_of_the_reduction(terms: int) -> None:
    """A float32 sum is well within the model at any length, a float16 sum is not."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(256, terms, generator=generator, dtype=torch.float64).to(torch.float16)
    expected = x.double().sum(dim=1)
    tolerance = Tolerance(accumulation=8.0, reduction="k")
    in_order = x.float().cumsum(dim=1)[:, -1]
    (margin,) = judged(in_order, expected, tolerance, terms=terms).margins
    assert 0 < margin.used < 1
    narrow = torch.zeros(256, dtype=torch.float16)
    for column in range(terms):
        narrow += x[:, column]
    assert judged(narrow.float(), expected, tolerance, terms=terms).mismatch is not None


def test_tf32_is_allowed_where_the_task_says_so_and_the_device_has_it() -> None:
    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randn(64, 64, generator=generator) for _ in "ab")
    expected = a.double() @ b.double()

    def truncated(x: torch.Tensor) -> torch.Tensor:
        return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)

    got = truncated(a) @ truncated(b)
    strict, lenient = Tolerance(rtol=1e-5, atol=1e-5), Tolerance(rtol=1e-5, atol=1e-5, tf32=True)
    assert judged(got, expected, lenient, tf32=True).mismatch is None
    assert judged(got, expected, lenient, tf32=False).mismatch is not None
    assert judged(got, expected, strict, tf32=True).mismatch is not None
    assert judged(got.half().float(), expected, lenient, tf32=True).mismatch is None
    assert judged(torch.zeros(64, 64), expected, lenient, tf32=True).mismatch is not None


def test_one_element_far_off_is_told_in_a_large_quantized_output() -> None:
    generator = torch.Generator().manual_seed(5)
    expected = torch.randn(512, 512, generator=generator, dtype=torch.float64)
    got = expected.float()
    got[511, 511] = 0.0
    expected[511, 511] = 1.0
    limits = QuantizationTolerance(cosine_min=0.99, relative_l1_max=0.01, rmse_max=0.01)

    def wrong(quantization: QuantizationTolerance) -> bool:
        found = compare(
            got,
            expected,
            case="c",
            output="o",
            dtype=torch.float32,
            tolerance=Tolerance(),
            quantization=quantization,
        )
        return found.mismatch is not None

    assert not wrong(limits)
    assert wrong(QuantizationTolerance(cosine_min=0.99, relative_l1_max=0.01, rmse_max=0.01, worst_max=0.1))


def test_a_large_row_rounded_right_is_right_among_thousands_and_one_element_left_out_is_not() -> None:
    generator = torch.Generator().manual_seed(6)
    expected = torch.randn(4096, 64, generator=generator, dtype=torch.float64)
    expected[7] *= 400.0
    limits = QuantizationTolerance(cosine_min=0.99999, relative_l1_max=3e-3, rmse_max=3e-3, worst_max=0.001)

    def mismatch(got: torch.Tensor) -> Mismatch | None:
        return compare(
            got,
            expected,
            case="c",
            output="o",
            dtype=torch.float16,
            tolerance=Tolerance(),
            quantization=limits,
        ).mismatch

    rounded = expected.half()
    assert float((rounded.double() - expected).abs().max()) > 0.01 * float(expected.square().mean().sqrt())
    assert mismatch(rounded) is None
    off = rounded.clone()
    off[4095, 63] += 0.1
    assert mismatch(off) is not None


@pytest.mark.parametrize(("name", "largest"), E4M3.items())
def test_eight_bit_floats_are_told_to_half_a_step(name: str, largest: float) -> None:
    dtype = getattr(torch, name)
    expected = doubles(0.0, 2.0**-9, 0.9, -17.0, 100.0, largest)
    right = expected.clamp(-largest, largest).to(dtype)
    assert judged(right, expected, Tolerance(ulps=0.5)).mismatch is None
    neighbour = doubles(0.0, 2.0**-9, 0.8125, -17.0, 100.0, largest).to(dtype)
    wrong = judged(neighbour, expected, Tolerance(ulps=0.6)).mismatch
    assert wrong is not None
    assert wrong.index == (2,)
