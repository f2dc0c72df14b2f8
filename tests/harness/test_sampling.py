"""Bytes at `gpu` sizes from a few programs: against what is known of kernels, and where a sample can say nothing."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.sample_messages import CaseSampled, Flow
from harness.worker.estimate import footprint
from harness.worker.estimate.program_sample import LaunchGrid
from tests.harness.driving import HERE, drive

pytestmark = pytest.mark.judge

SOURCE = (HERE / "sampled_kernels.py").read_text().splitlines()


@pytest.fixture(scope="module")
def reports() -> dict[str, CaseSampled]:
    return msgspec.convert(drive("sampling.py"), dict[str, CaseSampled])


def flow(reports: dict[str, CaseSampled], name: str) -> Flow:
    found = reports[name].flow
    assert found is not None, reports[name].why
    return found


def line_of(text: str) -> int:
    return next(number for number, found in enumerate(SOURCE, 1) if text in found)


def test_a_third_of_the_passes_ask_for_half_the_bytes(reports: dict[str, CaseSampled]) -> None:
    """8192 rows of 8192 floats: read once or three times, written once."""
    matrix = 8192 * 8192 * 4
    one, three = flow(reports, "one_pass"), flow(reports, "three_pass")
    assert (one.requested_read_bytes, one.requested_write_bytes) == (matrix, matrix)
    assert (three.requested_read_bytes, three.requested_write_bytes) == (3 * matrix, matrix)
    for found in (one, three):
        assert found.programs == 8192
        assert found.sampled < 200
        assert found.unique_low_bytes <= found.unique_high_bytes == found.die_bytes == 2 * matrix
        assert found.requested_low_bytes == found.requested_high_bytes


def test_a_small_launch_runs_whole_and_is_exact(reports: dict[str, CaseSampled]) -> None:
    found = flow(reports, "few")
    assert found.sampled == found.programs == 20
    assert found.unique_low_bytes == found.unique_high_bytes == 2 * 20 * 1000 * 4


def test_a_matmul_is_requested_many_times_over_and_distinct_once(reports: dict[str, CaseSampled]) -> None:
    """2048 x 2048 in tiles of 128: 16 x 16 programs read a panel of each operand."""
    matrix = 2048 * 2048 * 2
    found = flow(reports, "matmul")
    assert found.requested_read_bytes == 2 * 16 * matrix
    assert found.requested_write_bytes == matrix
    assert found.unique_high_bytes == 3 * matrix
    assert found.dot_flops == 2 * 2048**3
    assert found.unique_high_bytes < found.die_bytes < found.requested_read_bytes


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("skips_what_is_small", "which bytes it asks for depends on values that it loads"),
        ("sums_rows", "which bytes it asks for depends on values that it loads"),
        ("sums_rows_by_length", "which bytes it asks for depends on values that it loads"),
        ("looks_at_values", "host code reads values of tensors (`item`)"),
        ("waits", "a program waits for a value that another one writes (line "),
    ],
)
def test_what_depends_on_data_is_not_sampled(reports: dict[str, CaseSampled], name: str, why: str) -> None:
    assert reports[name].flow is None
    assert why in reports[name].why


@pytest.mark.parametrize("name", ["strides", "strides_whatever_is_raised", "never_asks"])
def test_a_sample_that_takes_long_is_left_out_and_says_why(
    reports: dict[str, CaseSampled], name: str
) -> None:
    """Given 0.3 s of CPU time; the first would take seconds, the second minutes, the third never ends."""
    assert reports[name].flow is None
    assert "more than 0.3 s of CPU time" in reports[name].why


def test_gathered_bytes_are_requested_exactly_and_distinct_within_bounds(
    reports: dict[str, CaseSampled],
) -> None:
    found = flow(reports, "gathers")
    count = 1 << 22
    assert found.requested_read_bytes == count * (8 + 4)
    assert found.unique_high_bytes == count * (8 + 4 + 4)
    assert found.unique_low_bytes < found.unique_high_bytes
    (remark,) = reports["gathers"].remarks
    assert f"line {line_of('tl.load(table_ptr + keys')}: addresses depend on loaded values" in remark


def test_an_offset_that_overflows_is_seen_at_large_sizes(reports: dict[str, CaseSampled]) -> None:
    """2^18 rows of 2^14 halves: `row * columns` passes 2^31."""
    load, store = reports["overflows"].out_of_bounds
    assert load.startswith(
        f"line {line_of('x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns)')}: "
    )
    assert "load before the start of `x_ptr` (index -" in load
    assert "store before the start of `out_ptr`" in store
    assert not reports["one_pass"].out_of_bounds


@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(1, 40), st.sampled_from([1, 2, 4, 8])),
        min_size=1,
        max_size=12,
    )
)
def test_footprints_are_the_bytes_of_their_lanes(accesses: list[tuple[int, int, int]]) -> None:
    parts, wanted = [], set()
    for start, count, item in accesses:
        addresses = np.arange(start, start + 3 * count, 3, dtype=np.uint64)
        parts.append(footprint.of_access(addresses, None, item))
        wanted |= {int(address) + byte for address in addresses for byte in range(item)}
    merged = footprint.union(parts)
    assert merged.size == len(wanted)
    assert (merged.starts[1:] > merged.ends[:-1]).all()


@given(
    grid=st.tuples(st.integers(1, 300), st.integers(1, 20), st.integers(1, 5)),
    dies=st.sampled_from([1, 8]),
    affordable=st.integers(0, 500),
)
def test_samples_stand_for_every_program_once(grid: tuple[int, int, int], dies: int, affordable: int) -> None:
    programs = LaunchGrid(grid, dies)
    chosen = programs.sample(affordable)
    count = math.prod(grid)
    assert sum(stratum.programs for stratum in chosen.strata) == count
    assert all(0 <= number < count for number in chosen.all)
    assert len({number % dies for number in chosen.group}) == 1
    assert programs.extrapolate(chosen, lambda _: 7) == (7 * count,) * 3
    edge: Any = lambda number: int(programs.position(number)[0] == grid[0] - 1)  # noqa: E731
    total = programs.extrapolate(chosen, edge)
    assert total.mean == total.low == total.high == count // grid[0]


def test_numbers_follow_the_order_in_which_hardware_starts_programs() -> None:
    programs = LaunchGrid((3, 2, 2), 1)
    assert [programs.position(number) for number in (0, 1, 2, 3, 6)] == [
        (0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 1),
    ]  # fmt: skip
