"""Decides which cases are timed in series of many calls, and has the timers capture them: all sides alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from harness.wire.messages.clock import BASELINE, CANDIDATE, SIDES, Measure
from suites.task import Case

from .case_inputs import CaseInputs
from .timed_seat import ClockFailed, TimedSeat

SERIES_BELOW_MS = 0.2
"""Calls are timed in series if a call of the baseline or of the candidate takes less: events add too much to it."""
LONGEST_REPLAY_MS = 20.0
"""A series of the longer call has more calls than that call needs only up to this time."""
NO_MEMORY = "four calls need more memory than a graph may have (4 GiB, or a fortieth of the device)"


def are_short(seats: Sequence[TimedSeat]) -> bool:
    """Whether the trial calls of baseline or candidate are short enough for a series."""
    return min(_call_ms(seats, BASELINE), _call_ms(seats, CANDIDATE)) < SERIES_BELOW_MS


def capture(
    case: Case,
    seats: Sequence[TimedSeat],
    inputs: CaseInputs,
    measure: Measure,
    alive: Callable[[], None],
) -> str:
    """Have every seat capture its calls; return why all are timed between events instead, empty if none is.

    Raises `ClockFailed` if a tape cannot be captured: then the next clock of the ladder is tried.

    All capture equally many calls, so that both sides find the caches in the same state: as many as the shorter call needs,
    unless the longer call takes too long for that. One pair of seats captures first: if one of its sides cannot, the others
    are spared the work.
    """
    rotate_bytes = measure.flush_bytes
    own_bytes = max(seat.prepared.peak_bytes for seat in seats)
    short_ms, long_ms = sorted(_call_ms(seats, side) for side in SIDES)
    few, many = (
        inputs.count_launches(case, call_ms, own_bytes, rotate_bytes) for call_ms in (long_ms, short_ms)
    )
    launches = max(few, min(many, int(LONGEST_REPLAY_MS / long_ms)))
    if not launches:
        return NO_MEMORY
    is_cold = launches * inputs.input_bytes(case) >= rotate_bytes
    first_pair = [seat for seat in seats if seat.link.pair == seats[0].link.pair]
    later = [seat for seat in seats if seat not in first_pair]
    for group in (first_pair, later):
        for seat in group:
            seat.begin_capture(launches)
        problems = []
        for seat in group:
            if problem := seat.end_capture(launches, cold=is_cold):
                problems.append(f"the {seat.link.side} cannot be captured: {problem}")
            alive()
        if problems:
            if all(seat.taped for seat in seats):
                raise ClockFailed(problems[0])
            for seat in seats:
                seat.launches, seat.cold = 0, measure.cold
            return problems[0]
    for seat in seats:
        seat.method = seat.rung.method
    return ""


def _call_ms(seats: Sequence[TimedSeat], side: str) -> float:
    """The median trial call of a side."""
    of_side = [seat for seat in seats if seat.link.side == side]
    return statistics.median(sample for seat in of_side for sample in seat.trial.samples_ms)
