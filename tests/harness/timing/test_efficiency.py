"""Protects efficiency figures: known measurements, the peak that applies, and times that the hardware cannot reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.hardware.product import Product
from harness.hardware.product_tables import PRODUCTS, find_product
from harness.stages.timing.efficiency import (
    ROUNDING,
    case_efficiency,
    efficiency,
    least_seconds,
    most_flops,
)
from harness.wire.messages.clock import Floor
from harness.wire.results.latency import Efficiency
from suites import Task, load_task
from suites.task import RecordedScript

H200, MI300X = find_product("H200 SXM"), find_product("MI300X")
GIB, MIB = 1 << 30, 1 << 20


def ms_at(count: float, rate: float) -> float:
    return count / rate * 1e3


def test_measured_times_of_an_h200_are_not_suspect() -> None:
    """Measured on an H200: a copy of 1 GiB by torch in 0.511 ms; an 8192-cubed bfloat16 product in 1.398 ms."""
    copy = efficiency(H200, "uint8", 2 * GIB, 0, 0.5113, matrix=False)
    assert copy.io_utilisation == pytest.approx(0.875, abs=1e-3)
    assert (copy.product, copy.dtype, copy.bytes, copy.mfu) == ("H200 SXM", "uint8", 2 * GIB, None)
    product = efficiency(H200, "bfloat16", 3 * 8192**2 * 2, 2 * 8192**3, 1.398, matrix=True)
    assert product.mfu == pytest.approx(0.795, abs=1e-3)
    assert copy.suspect == product.suspect == ""


def test_matmul_is_compared_with_peak_and_vendor_result() -> None:
    """AMD reports 654 TFLOP/s of float16 on an MI300X: half of the peak, all of the achievable rate."""
    flops = 2 * 4096**3
    result = efficiency(MI300X, "float16", 3 * 4096**2 * 2, flops, ms_at(flops, 654e12), matrix=True)
    assert result.mfu == pytest.approx(654 / 1307.4)
    assert result.mfu_achievable == pytest.approx(1.0)
    assert result.best == result.mfu
    assert result.io_achievable > result.io_utilisation


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
def test_peak_is_of_the_units_that_compute(dtype: str, *, matrix: bool, peak: float) -> None:
    result = efficiency(H200, dtype, 1, 10**12, 100.0, matrix=matrix)
    assert result.mfu == pytest.approx(1e13 / peak)


def test_bandwidth_above_hardware_limit_is_suspect() -> None:
    result = efficiency(H200, "float32", 2 * GIB, 0, ms_at(2 * GIB, 6e12), matrix=False)
    assert "H200 SXM needs at least" in result.suspect
    assert "4.8 TB/s of memory and 60 MiB of caches" in result.suspect
    assert "\n" not in result.suspect


@pytest.mark.parametrize(
    ("product", "written", "fastest"),
    [(H200, 32 * MIB, 2.0), (H200, 1 * MIB, 64 / 63), (MI300X, 1 * MIB, 2.0)],
    ids=["a copy", "a reduction", "a last-level cache may keep half of the inputs"],
)
def test_cold_caches_hold_outputs_alone(product: Product, written: int, fastest: float) -> None:
    """`fastest`: how many times as fast as memory a call may be that touches 64 MiB."""

    def suspicion(times_memory: float) -> str:
        milliseconds = ms_at(64 * MIB, times_memory * product.memory_bytes_per_s)
        return efficiency(
            product, "float32", 64 * MIB, 0, milliseconds, matrix=False, written=written
        ).suspect

    assert suspicion(fastest) == ""
    assert "MiB of cold caches" in suspicion(fastest * ROUNDING * 1.01)


def recorded_task(folder: Path, cost: str) -> Task:
    """A recorded task with this cost."""
    (folder / "cost.py").write_text(
        f"from suites import Cost\n\n\ndef cost(sizes, dtype):\n    return Cost({cost})\n"
    )
    return replace(load_task("softmax"), script=RecordedScript("wavedeck_call(call)"), folder=folder)


def test_a_call_counts_the_estimate_for_its_roof_and_only_the_minimum_for_suspicion(tmp_path: Path) -> None:
    task = recorded_task(tmp_path, f"flops=0, minimal_bytes=1, estimated_bytes={2 * GIB}")
    floor = Floor(empty_ms=0.002, copies=((2 * GIB, 4e12, 6e12),))
    at_copy = case_efficiency(task, task.cases[0], H200, ms_at(2 * GIB, 3.9e12), floor)
    assert (at_copy.bytes, at_copy.suspect) == (2 * GIB, "")
    assert at_copy.io_measured == pytest.approx(3.9 / 4)
    too_fast = case_efficiency(task, task.cases[0], H200, ms_at(2 * GIB, 20e12), floor)
    assert (too_fast.io_measured, too_fast.io_utilisation, too_fast.suspect) == (None, None, "")


def test_a_call_that_multiplies_matrices_has_no_share_of_a_copy(tmp_path: Path) -> None:
    """Its operations are not counted: 1 % of a copy would ask for what cannot be won."""
    task = recorded_task(
        tmp_path, f"flops=0, minimal_bytes=1, estimated_bytes={2 * GIB}, uncounted_products=True"
    )
    floor = Floor(empty_ms=0.002, copies=((2 * GIB, 4e12, 6e12),))
    result = case_efficiency(task, task.cases[0], H200, ms_at(2 * GIB, 0.04e12), floor)
    assert (result.io_measured, result.best, result.suspect) == (None, None, "")


def test_flops_above_chip_limit_are_suspect() -> None:
    """The data sheet's 989.4 TFLOP/s hold at 1830 MHz; at its top clock of 1980 MHz, an H200 reaches 1070."""
    flops = 2 * 8192**3
    assert efficiency(H200, "float16", GIB, flops, ms_at(flops, 1065e12), matrix=True).suspect == ""
    result = efficiency(H200, "float16", GIB, flops, ms_at(flops, 1200e12), matrix=True)
    assert "1200 TFLOP/s of float16: H200 SXM does at most 1103" in result.suspect


def test_case_efficiency_uses_task_cost_at_gpu_sizes() -> None:
    task = load_task("matmul")
    case = next(case for case in task.cases if case.dtype == "float16")
    m, n, k = case.gpu["m"], case.gpu["n"], case.gpu["k"]
    result = case_efficiency(task, case, H200, ms_at(2 * m * n * k, 989.4e12 / 2))
    assert (result.flops, result.dtype) == (2 * m * n * k, "float16")
    assert result.bytes == 2 * (m * k + k * n + m * n)
    assert result.mfu == pytest.approx(0.5)


WORK = {
    "product": st.sampled_from(PRODUCTS),
    "dtype": st.sampled_from(["float32", "float16", "float8_e4m3fn", "float64"]),
    "size": st.integers(1, 1 << 36),
    "flops": st.integers(0, 1 << 44),
    "ms": st.floats(1e-3, 1e3),
    "matrix": st.booleans(),
}
SHARES = ("io_utilisation", "mfu", "io_achievable", "mfu_achievable", "best")


def shares_of(result: Efficiency) -> list[float]:
    return [share for name in SHARES if (share := getattr(result, name)) is not None]


@given(**WORK)
def test_shares_follow_from_work_over_time_and_peaks(
    product: Product, dtype: str, size: int, flops: int, ms: float, *, matrix: bool
) -> None:
    result = efficiency(product, dtype, size, flops, ms, matrix=matrix)
    assert result.io_utilisation == pytest.approx(size / (ms / 1e3) / product.memory_bytes_per_s)
    peak = product.peak(dtype, matrix=matrix)
    assert result.mfu == (pytest.approx(flops / (ms / 1e3) / peak) if flops and peak else None)
    assert result.best == max(share for share in (result.io_utilisation, result.mfu) if share is not None)
    twice = efficiency(product, dtype, 2 * size, 2 * flops, 2 * ms, matrix=matrix)
    assert shares_of(twice) == pytest.approx(shares_of(result))
    slower = efficiency(product, dtype, size, flops, 2 * ms, matrix=matrix)
    assert [2 * share for share in shares_of(slower)] == pytest.approx(shares_of(result))


NEAR = st.sampled_from([0.3, 0.7, 0.99, 1.01, 1.5, 4.0])
"""Times as multiples of the least possible time."""


@given(**WORK, near=NEAR, more=st.floats(1.0, 100.0))
def test_time_is_suspect_below_the_least_for_the_bytes_and_for_the_flops(
    product: Product, dtype: str, size: int, flops: int, ms: float, near: float, more: float, *, matrix: bool
) -> None:
    limit = most_flops(product, dtype)
    least_ms = 1e3 * max(least_seconds(product, size), flops / limit if limit else 0.0)
    ms = near * least_ms or ms
    suspect = bool(efficiency(product, dtype, size, flops, ms, matrix=matrix).suspect)
    assert suspect == (ms < least_ms)
    slower = efficiency(product, dtype, size, flops, more * ms, matrix=matrix).suspect
    larger = efficiency(product, dtype, int(more * size), int(more * flops), ms, matrix=matrix).suspect
    assert bool(slower) <= suspect <= bool(larger)


@given(**WORK, near=NEAR, estimate=st.integers(0, 1 << 37))
def test_an_estimate_changes_the_utilisation_and_no_suspicion(
    product: Product,
    dtype: str,
    size: int,
    flops: int,
    ms: float,
    near: float,
    estimate: int,
    *,
    matrix: bool,
) -> None:
    least_ms = 1e3 * least_seconds(product, estimate)
    ms = near * least_ms or ms
    plain = efficiency(product, dtype, size, flops, ms, matrix=matrix)
    result = efficiency(product, dtype, size, flops, ms, matrix=matrix, bytes_moved=estimate)
    assert (result.suspect, result.mfu) == (plain.suspect, plain.mfu)
    assert result.bytes == (estimate if ms >= least_ms else 0), "the time refutes a larger estimate"
    assert (result.io_utilisation is None) == (result.bytes == 0)
