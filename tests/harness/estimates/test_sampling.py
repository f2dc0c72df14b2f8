"""Protects sampled traffic at `gpu` sizes: figures of known kernels, and reasons for kernels that cannot be sampled."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.messages.sampler import CaseSampled
from harness.wire.results.evaluation import Flow
from harness.worker.estimate import footprint
from harness.worker.estimate.program_sample import LaunchGrid
from tests.support.judge.drivers import drive, line_of

pytestmark = pytest.mark.judge


@pytest.fixture(scope="module")
def reports() -> dict[str, CaseSampled]:
    return msgspec.convert(drive("sample_candidates.py"), dict[str, CaseSampled])


def flow(reports: dict[str, CaseSampled], name: str) -> Flow:
    result = reports[name].flow
    assert result is not None, reports[name].why
    return result


def test_one_pass_requests_half_the_bytes_of_three_passes(reports: dict[str, CaseSampled]) -> None:
    """8192 rows of 8192 floats: read once or three times, written once."""
    matrix = 8192 * 8192 * 4
    one_pass, three = flow(reports, "one_pass"), flow(reports, "three_pass")
    assert (one_pass.requested_read_bytes, one_pass.requested_write_bytes) == (matrix, matrix)
    assert (three.requested_read_bytes, three.requested_write_bytes) == (3 * matrix, matrix)
    for kernel_flow in (one_pass, three):
        assert kernel_flow.programs == 8192
        assert kernel_flow.sampled < 200
        assert (
            kernel_flow.unique_low_bytes
            <= kernel_flow.unique_high_bytes
            == kernel_flow.die_bytes
            == 2 * matrix
        )
        assert kernel_flow.requested_low_bytes == kernel_flow.requested_high_bytes


def test_small_launch_is_run_completely(reports: dict[str, CaseSampled]) -> None:
    few_rows = flow(reports, "few")
    assert few_rows.sampled == few_rows.programs == 20
    assert few_rows.unique_low_bytes == few_rows.unique_high_bytes == 2 * 20 * 1000 * 4


def test_matmul_requests_operands_many_times(reports: dict[str, CaseSampled]) -> None:
    """2048 x 2048 in tiles of 128: each of 16 x 16 programs reads a panel of each operand."""
    matrix = 2048 * 2048 * 2
    matmul = flow(reports, "matmul")
    assert matmul.requested_read_bytes == 2 * 16 * matrix
    assert matmul.requested_write_bytes == matrix
    assert matmul.unique_high_bytes == 3 * matrix
    assert matmul.dot_flops == 2 * 2048**3
    assert matmul.unique_high_bytes < matmul.die_bytes < matmul.requested_read_bytes


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("skips_small_values", "which bytes it asks for depends on values that it loads"),
        ("sums_rows", "which bytes it asks for depends on values that it loads"),
        ("sums_rows_by_length", "which bytes it asks for depends on values that it loads"),
        ("branches_on_values", "host code reads values of tensors (`item`)"),
        ("waits", "a program waits for a value that another one writes (line "),
    ],
)
def test_data_dependent_kernel_is_not_sampled(reports: dict[str, CaseSampled], name: str, why: str) -> None:
    assert reports[name].flow is None
    assert why in reports[name].why


@pytest.mark.parametrize("name", ["strides", "strides_and_catches_all", "loops_without_memory"])
def test_slow_sample_is_skipped_with_a_reason(reports: dict[str, CaseSampled], name: str) -> None:
    """Each kernel gets 0.3 s of CPU time: the first would take seconds, the second minutes, the third never ends."""
    assert reports[name].flow is None
    assert "more than 0.3 s of CPU time" in reports[name].why


def test_gather_has_exact_requests_and_bounded_unique_bytes(reports: dict[str, CaseSampled]) -> None:
    gather = flow(reports, "gathers")
    count = 1 << 22
    assert gather.requested_read_bytes == count * (8 + 4)
    assert gather.unique_high_bytes == count * (8 + 4 + 4)
    assert gather.unique_low_bytes < gather.unique_high_bytes
    (remark,) = reports["gathers"].remarks
    assert (
        f"line {line_of('sampled_kernels.py', 'tl.load(table_ptr + keys')}: addresses depend on loaded values"
        in remark
    )


def test_overflowing_offset_is_found_at_large_sizes(reports: dict[str, CaseSampled]) -> None:
    """2^18 rows of 2^14 halves: `row * columns` passes 2^31."""
    load, store = reports["overflows"].out_of_bounds
    assert load.startswith(
        f"line {line_of('sampled_kernels.py', 'x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns)')}: "
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
def test_union_of_footprints_has_the_bytes_of_all_lanes(accesses: list[tuple[int, int, int]]) -> None:
    parts, expected = [], set()
    for start, count, item in accesses:
        addresses = np.arange(start, start + 3 * count, 3, dtype=np.uint64)
        parts.append(footprint.of_access(addresses, None, item))
        expected |= {int(address) + byte for address in addresses for byte in range(item)}
    merged = footprint.union(parts)
    assert merged.size == len(expected)
    assert (merged.starts[1:] > merged.ends[:-1]).all()


@given(
    grid=st.tuples(st.integers(1, 300), st.integers(1, 20), st.integers(1, 5)),
    dies=st.sampled_from([1, 8]),
    affordable=st.integers(0, 500),
)
def test_sample_represents_every_program_once(grid: tuple[int, int, int], dies: int, affordable: int) -> None:
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


def test_program_numbers_follow_hardware_order() -> None:
    programs = LaunchGrid((3, 2, 2), 1)
    assert [programs.position(number) for number in (0, 1, 2, 3, 6)] == [
        (0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 1),
    ]  # fmt: skip
