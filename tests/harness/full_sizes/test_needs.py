"""Protects the needed bytes of a case, and the excess of what kernels request."""

from __future__ import annotations

import pytest

from harness.hardware.product_tables import find_product
from harness.hardware.targets import target
from harness.stages.full_sizes import full_size, needed_bytes
from suites import load_task
from suites.task import Cost
from tests.support.judge.evaluations import traffic

MI300X = target("gfx942")


def test_streaming_case_needs_the_bytes_of_its_tensors() -> None:
    cost = Cost(flops=1 << 24, minimal_bytes=3 << 26)
    assert needed_bytes(cost, "float32", MI300X) == 3 << 26


def test_large_product_needs_the_bytes_that_memory_moves_meanwhile() -> None:
    """Without its operations, a product would rank by its tile alone."""
    cost = Cost(flops=2 * 4096**3, minimal_bytes=3 * 4096 * 4096 * 2, dot_dtype="float16")
    assert needed_bytes(cost, "float16", MI300X) == pytest.approx(2 * 4096**3 / 1307.4e12 * 5.3e12)


def test_known_device_counts_with_its_own_peaks() -> None:
    """An H200 moves more bytes than an H100, which has the same target, while the same FLOPs run."""
    cost = Cost(flops=2 * 4096**3, minimal_bytes=1 << 20, dot_dtype="float16")
    h200 = find_product("H200 SXM")
    on_h100, on_h200 = (needed_bytes(cost, "float16", target("sm_90"), product) for product in (None, h200))
    assert on_h200 == pytest.approx(on_h100 * h200.memory_bytes_per_s / 3.35e12, rel=1e-3)
    assert needed_bytes(cost, "float16", MI300X, h200) == needed_bytes(cost, "float16", MI300X)


def test_operations_without_a_known_peak_do_not_count() -> None:
    """An A100 has no matrix units for float8."""
    cost = Cost(flops=1 << 60, minimal_bytes=1 << 20, dot_dtype="float8_e4m3fn")
    assert needed_bytes(cost, "float8_e4m3fn", target("sm_80")) == 1 << 20
    assert needed_bytes(cost, "float8_e4m3fn", target("sm_90")) > 1 << 20


def test_case_is_long_if_its_bytes_take_a_microsecond() -> None:
    """5.3 MB on an MI300X."""
    sizes = {case.name: full_size(load_task("softmax"), case, MI300X) for case in load_task("softmax").cases}
    assert sizes["fp32"].is_long
    assert (sizes["fp32-one-row"].needed_bytes, sizes["fp32-one-row"].is_long) == (2 * 16383 * 4, False)


def test_excess_is_at_least_one_and_unknown_without_a_need() -> None:
    assert traffic("c", read=300, write=100, minimal=200).excess == 2.0
    assert traffic("c", read=300, write=100, minimal=200, needed_bytes=1000).excess == 1.0
    assert traffic("c", read=300, write=100).excess is None
