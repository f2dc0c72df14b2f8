"""Protects the three programs of each launch at `gpu` sizes: what they miss, what no program touches, and reasons for silence."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.messages.compiler import RanAtFullSizes
from harness.worker.full_sizes.three_programs import _size, _union
from tests.support.judge.drivers import drive, line_of

pytestmark = pytest.mark.judge
MATRIX = 8192 * 8192 * 4


@pytest.fixture(scope="module")
def reports() -> dict[str, RanAtFullSizes]:
    return msgspec.convert(drive("run_at_full_sizes.py"), dict[str, RanAtFullSizes])


@pytest.mark.parametrize(
    ("name", "touched_bytes"),
    [
        ("one_pass", 2 * MATRIX),
        ("half_of_rows", MATRIX),
        ("small", 2 * 3 * 1000 * 4),
        ("matmul", 3 * 2048 * 2048 * 2),
    ],
)
def test_bound_of_touched_bytes(reports: dict[str, RanAtFullSizes], name: str, touched_bytes: int) -> None:
    """Repeated reads and shared operands count once."""
    assert reports[name] == RanAtFullSizes(name, touched_bytes=touched_bytes)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("skips_small_values", "which bytes it asks for depends on values that it loads"),
        ("sums_rows_by_length", "which bytes it asks for depends on values that it loads"),
        ("branches_on_values", "host code reads values of tensors (`item`)"),
        ("strides_and_catches_all", "its three programs take more than 0.3 s of CPU time"),
        ("loops_without_memory", "its three programs take more than 0.3 s of CPU time"),
    ],
)
def test_nothing_is_said_of_kernels_that_depend_on_values_or_run_long(
    reports: dict[str, RanAtFullSizes], name: str, why: str
) -> None:
    assert reports[name] == RanAtFullSizes(name, why=why)


def test_address_from_a_loaded_value_is_no_miss(reports: dict[str, RanAtFullSizes]) -> None:
    """The made-up zero would store before the start; the load past the end is certain."""
    report = reports["stores_where_values_say"]
    (load,) = report.missed_loads
    line = line_of("full_size_kernels.py", "x = tl.load(x_ptr + offsets)")
    assert f"line {line}: load of 1023 elements past the end of `x_ptr`" in load
    assert (report.missed_stores, report.touched_bytes) == ((), None)
    assert (reports["gathers"].missed_loads, reports["gathers"].touched_bytes) == ((), None)


def test_overflowing_offset_is_found_at_large_sizes(reports: dict[str, RanAtFullSizes]) -> None:
    """2^18 rows of 2^14 halves: `row * columns` passes 2^31."""
    (load,), (store,) = reports["overflows"].missed_loads, reports["overflows"].missed_stores
    assert "before the start of `x_ptr` (index -" in load
    assert "before the start of `out_ptr`" in store


@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(1, 40), st.sampled_from([1, 2, 4, 8])),
        min_size=1,
        max_size=12,
    )
)
def test_union_of_accesses_has_the_bytes_of_all_lanes(accesses: list[tuple[int, int, int]]) -> None:
    parts, expected = [], set()
    for start, count, item in accesses:
        addresses = np.arange(start, start + 3 * count, 3, dtype=np.int64)
        parts.append(np.stack([addresses, addresses + item]))
        expected |= {int(address) + byte for address in addresses for byte in range(item)}
    merged = _union(parts)
    assert _size(merged) == len(expected)
    assert (merged[0][1:] > merged[1][:-1]).all()
