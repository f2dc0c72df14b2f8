"""Efficiency: known figures, which peak counts, and when a time is too good to be true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.hardware.partitions import scale_to_partition
from harness.hardware.product import Product
from harness.hardware.product_tables import PRODUCTS, find_product
from harness.stages.timing.efficiency import ROUNDING, case_efficiency, efficiency, least_seconds
from suites import load_task

H200, MI300X, RTX_4090 = find_product("H200 SXM"), find_product("MI300X"), find_product("RTX 4090")
GIB, MIB = 1 << 30, 1 << 20


def ms_at(count: float, rate: float) -> float:
    return count / rate * 1e3


def test_a_copy_of_a_gibibyte_at_the_peak_is_all_of_it() -> None:
    made = efficiency(H200, "float32", 2 * GIB, 0, ms_at(2 * GIB, 4.8e12), matrix=False)
    assert made.io_utilisation == pytest.approx(1.0)
    assert made.bytes_per_s == pytest.approx(4.8e12)
    assert (made.mfu, made.best, made.suspect) == (None, pytest.approx(1.0), "")
    assert (made.product, made.dtype, made.bytes) == ("H200 SXM", "float32", 2 * GIB)


def test_what_an_h200_was_seen_to_do_is_no_suspect() -> None:
    """Measured on an H200: a copy of 1 GiB by torch in 0.511 ms; an 8192-cubed bfloat16 product in 1.398 ms."""
    copy = efficiency(H200, "uint8", 2 * GIB, 0, 0.5113, matrix=False)
    assert copy.io_utilisation == pytest.approx(0.875, abs=1e-3)
    product = efficiency(H200, "bfloat16", 3 * 8192**2 * 2, 2 * 8192**3, 1.398, matrix=True)
    assert product.mfu == pytest.approx(0.795, abs=1e-3)
    assert copy.suspect == product.suspect == ""


def test_a_matmul_goes_against_the_peak_and_against_what_the_vendor_reaches() -> None:
    """AMD's own 654 TFLOP/s of float16 on an MI300X: half of the peak, all of the achievable."""
    flops = 2 * 4096**3
    made = efficiency(MI300X, "float16", 3 * 4096**2 * 2, flops, ms_at(flops, 654e12), matrix=True)
    assert made.mfu == pytest.approx(654 / 1307.4)
    assert made.mfu_achievable == pytest.approx(1.0)
    assert made.best == made.mfu
    assert made.io_achievable is not None
    assert made.io_utilisation is not None
    assert made.io_achievable > made.io_utilisation


@pytest.mark.parametrize(
    ("dtype", "matrix", "peak"),
    [
        ("float16", True, 989.4e12),
        ("float32", True, 494.7e12),
        ("float8_e4m3fn", True, 1978.9e12),
        ("float16", False, 66.9e12),
        ("float32", False, 66.9e12),
        ("float64", False, 33.5e12),
    ],
)
def test_the_peak_that_counts_is_of_the_units_that_do_the_work(
    dtype: str, *, matrix: bool, peak: float
) -> None:
    made = efficiency(H200, dtype, 1, 10**12, 100.0, matrix=matrix)
    assert made.mfu == pytest.approx(1e13 / peak)


def test_more_bytes_than_memory_can_bring_are_suspect_and_say_the_limit() -> None:
    made = efficiency(H200, "float32", 2 * GIB, 0, ms_at(2 * GIB, 6e12), matrix=False)
    assert "H200 SXM needs at least" in made.suspect
    assert "4.8 TB/s of memory and 60 MiB of caches" in made.suspect
    assert "\n" not in made.suspect


def test_what_the_caches_hold_may_be_faster_than_memory() -> None:
    """A copy of 32 MiB to 32 MiB on an H200: 60 MiB of it may be there already, or not written back yet."""
    assert efficiency(H200, "float32", 64 * MIB, 0, ms_at(64 * MIB, 8e12), matrix=False).suspect == ""
    assert efficiency(H200, "float32", 64 * MIB, 0, ms_at(64 * MIB, 200e12), matrix=False).suspect


def test_more_flops_than_the_chip_has_are_suspect_and_a_faster_clock_is_not() -> None:
    """The sheet's 989.4 TFLOP/s come out at 1830 MHz; an H200 runs up to 1980 MHz, which is 1070."""
    flops = 2 * 8192**3
    assert efficiency(H200, "float16", GIB, flops, ms_at(flops, 1065e12), matrix=True).suspect == ""
    made = efficiency(H200, "float16", GIB, flops, ms_at(flops, 1200e12), matrix=True)
    assert "1200 TFLOP/s of float16: H200 SXM does at most 1103" in made.suspect


def test_a_partition_is_held_against_its_own_peaks() -> None:
    """A quarter of the memory at its full speed is all that a CPX/NPS4 device has."""
    one = scale_to_partition(MI300X, "CPX/NPS4", None)
    made = efficiency(one, "float32", 2 * GIB, 0, ms_at(2 * GIB, 1.325e12), matrix=False)
    assert made.io_utilisation == pytest.approx(1.0)
    assert made.product == "MI300X CPX/NPS4"
    assert efficiency(one, "float32", 2 * GIB, 0, ms_at(2 * GIB, 2.65e12), matrix=False).suspect


def test_a_case_is_reckoned_by_its_tasks_cost_at_gpu_sizes() -> None:
    task = load_task("matmul")
    case = next(one for one in task.cases if one.dtype == "float16")
    m, n, k = case.gpu["m"], case.gpu["n"], case.gpu["k"]
    made = case_efficiency(task, case, H200, ms_at(2 * m * n * k, 989.4e12 / 2))
    assert (made.flops, made.dtype) == (2 * m * n * k, "float16")
    assert made.mfu == pytest.approx(0.5)


@given(one=st.sampled_from(PRODUCTS), size=st.integers(1, 1 << 36), factor=st.floats(1.01, 4.0))
def test_peak_bandwidth_is_never_suspect_and_more_than_that_is_once_caches_cannot_explain_it(
    one: Product, size: int, factor: float
) -> None:
    milliseconds = ms_at(size, one.memory_bytes_per_s)
    assert efficiency(one, "float32", size, 0, milliseconds, matrix=False).suspect == ""
    caches = one.l2_bytes + one.last_level_bytes
    large = int(caches * 400 * factor)
    too_fast = ms_at(large, one.memory_bytes_per_s * ROUNDING * 1.01)
    assert efficiency(one, "float32", large, 0, too_fast, matrix=False).suspect
    assert least_seconds(one, size) <= least_seconds(one, 2 * size)
