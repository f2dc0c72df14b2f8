"""Decides which cases are timed in series of many calls, and has the timers capture them: all sides alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from harness.wire.messages.clock import BASELINE, CANDIDATE, SIDES, Measure
from suites.task import Case

from .case_inputs import CaseInputs
from .timed_process import ClockFailed, TimedProcess

SERIES_BELOW_MS = 0.2
"""Calls are timed in series if a call of the baseline or of the candidate takes less: events add too much to it."""
LONGEST_REPLAY_MS = 20.0
"""A series of the longer call has more calls than that call needs only up to this time."""
NO_MEMORY = "four calls need more memory than a graph may have (4 GiB, or a fortieth of the device)"


def are_short(processes: Sequence[TimedProcess]) -> bool:
    """Whether the trial calls of baseline or candidate are short enough for a series."""
    return min(_call_ms(processes, BASELINE), _call_ms(processes, CANDIDATE)) < SERIES_BELOW_MS


def capture(
    case: Case,
    processes: Sequence[TimedProcess],
    inputs: CaseInputs,
    measure: Measure,
    alive: Callable[[], None],
) -> str:
    """Have every process capture its calls; return why all are timed between events instead, empty if none is.

    Raises `ClockFailed` if a tape cannot be captured: then the next clock of the ladder is tried.

    All capture equally many calls, so that both sides find the caches in the same state: as many as the shorter call needs,
    unless the longer call takes too long for that. One pair of processes captures first: if one of its sides cannot, the others
    are spared the work.
    """
    rotate_bytes = measure.flush_bytes
    own_bytes = max(process.prepared.peak_bytes for process in processes)
    short_ms, long_ms = sorted(_call_ms(processes, side) for side in SIDES)
    few, many = (
        inputs.count_launches(case, call_ms, own_bytes, rotate_bytes) for call_ms in (long_ms, short_ms)
    )
    launches = max(few, min(many, int(LONGEST_REPLAY_MS / long_ms)))
    if not launches:
        return NO_MEMORY
    is_cold = launches * inputs.input_bytes(case) >= rotate_bytes
    first_pair = [process for process in processes if process.link.pair == processes[0].link.pair]
    later = [process for process in processes if process not in first_pair]
    for group in (first_pair, later):
        for process in group:
            process.begin_capture(launches)
        problems = []
        for process in group:
            if problem := process.end_capture(launches, cold=is_cold):
                problems.append(f"the {process.link.side} cannot be captured: {problem}")
            alive()
        if problems:
            if all(process.taped for process in processes):
                raise ClockFailed(problems[0])
            for process in processes:
                process.launches, process.cold = 0, measure.cold
            return problems[0]
    for process in processes:
        process.method = process.rung.method
    return ""


def _call_ms(processes: Sequence[TimedProcess], side: str) -> float:
    """The median trial call of a side."""
    of_side = [process for process in processes if process.link.side == side]
    return statistics.median(sample for process in of_side for sample in process.trial.samples_ms)
