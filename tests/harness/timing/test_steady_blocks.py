"""Protects the choice of blocks: both sides of a case at one clock, and no other process on the device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import pytest

from harness.node.telemetry.samples import DevicePoint, Watched
from harness.stages.timing.steady_blocks import drop_disturbed_blocks
from harness.wire.messages.clock import BASELINE, CANDIDATE
from tests.support.timing.process_times import QUIET, process


def clocks(*spans: tuple[float, float, int]) -> Watched:
    """A point every 10 ms, with the clock of the span (from, to) that it is in."""
    points: Iterable[DevicePoint] = (
        DevicePoint(at_s=began_s + step / 100, clock_mhz=mhz)
        for began_s, ended_s, mhz in spans
        for step in range(int((ended_s - began_s) * 100))
    )
    return Watched(QUIET, tuple(points))


def test_blocks_beside_others_are_dropped_and_counted() -> None:
    candidate = process(CANDIDATE, 0, 1.0, began_s=10.0)
    baseline = process(BASELINE, 0, 1.0, began_s=20.0)
    points = tuple(
        DevicePoint(at_s=at / 10, clock_mhz=1900, others=1 if 100 <= at <= 105 else 0)
        for at in range(90, 230)
    )
    kept, left_out = drop_disturbed_blocks((candidate, baseline), Watched(QUIET, points))
    assert [(len(process.blocks), process.clock_mhz) for process in kept] == [(1, 1900), (2, 1900)]
    assert left_out == Counter({("fp32", CANDIDATE): 5})
    crowded = tuple(msgspec.structs.replace(point, others=int(point.at_s >= 9.5)) for point in points)
    assert drop_disturbed_blocks((candidate,), Watched(QUIET, crowded))[0] == ()
    waiting = tuple(msgspec.structs.replace(point, others=2) for point in points)
    (undisturbed,), _ = drop_disturbed_blocks((candidate,), Watched(QUIET, waiting))
    assert undisturbed.blocks == candidate.blocks, "they compute nothing"


def test_kernel_that_lowers_the_clock_is_compared_at_the_lower_clock() -> None:
    """Blocks of a process are 0.5 s long and begin 1 s apart."""
    fast = [process(side, 0, 1.0, began_s=at) for at, side in ((0.0, BASELINE), (4.0, CANDIDATE))]
    slow = [
        process(side, 0, 1.0, case="bf16", began_s=at) for at, side in ((10.0, BASELINE), (14.0, CANDIDATE))
    ]
    watched = clocks((0.0, 10.9, 1980), (10.9, 20.0, 1600))
    kept, left_out = drop_disturbed_blocks((*fast, *slow), watched)
    assert [(process_times.case, process_times.side, process_times.clock_mhz) for process_times in kept] == [
        ("fp32", BASELINE, 1980),
        ("fp32", CANDIDATE, 1980),
        ("bf16", BASELINE, 1600),
        ("bf16", CANDIDATE, 1600),
    ]
    assert left_out == Counter({("bf16", BASELINE): 5}), "the block that began before the clock fell"


@pytest.mark.parametrize("lower", [BASELINE, CANDIDATE])
def test_sides_at_different_clocks_are_not_compared(lower: str) -> None:
    sides = [process(side, 0, 1.0, began_s=4.0 * (side != lower)) for side in (BASELINE, CANDIDATE)]
    kept, left_out = drop_disturbed_blocks(sides, clocks((0.0, 3.0, 1600), (3.0, 8.0, 1980)))
    assert {process_times.side for process_times in kept} == {lower}
    assert sum(left_out.values()) == 10
