"""The second look: three more pairs of processes for the cases whose interval is too wide, in a run of the clock of their own.

New timers need seconds to start. They start under the shared lease, so the first look gives the exclusive lease back.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from harness.node.telemetry.samples import Watched
from harness.wire import ratios
from harness.wire.clock_messages import BASELINE, CANDIDATE, TAPE, Measure, Measured, method_of
from harness.wire.latency import DeviceState

from .conclusions import LeftOut, median_of_medians, pair_processes, samples_by_process


class Look(msgspec.Struct, frozen=True):
    """What one run of the clock measured, or two together."""

    measured: Measured
    """Without disturbed blocks."""
    left_out: LeftOut
    watched: Watched
    """Telemetry of the first run."""
    before: DeviceState | None
    after: DeviceState | None
    seconds: float
    """Time under the exclusive lease, in the first run."""


def plan_second_look(measure: Measure, first: Look) -> Measure | None:
    """The request for a second look; `None` if no case needs one, the first look failed, or no time is left."""
    measured, left_s = first.measured, measure.budget_s - first.seconds
    if measure.effort.looks < ratios.LOOKS or measured.verdict or measured.problem or left_s <= 0:
        return None
    names = (case.name for case in measure.task.open_cases)
    unresolved = tuple(name for name in names if not _is_resolved(first, name))
    if not unresolved:
        return None
    chosen: dict[str, dict[str, dict[str, str]]] = {}
    for process in measured.times:
        if process.side != TAPE:
            chosen.setdefault(process.side, {})[process.case] = process.configs
    return msgspec.structs.replace(
        measure, unresolved=unresolved, chosen=chosen, budget_s=left_s, matmul_dtype="", energy_s=0.0
    )


def join_looks(first: Look, second: Look) -> Look:
    """Both looks as one. Only the first has tapes, checks, energy and telemetry."""
    seconds = Counter(first.measured.seconds)
    seconds.update(second.measured.seconds)
    measured = msgspec.structs.replace(
        first.measured,
        times=first.measured.times + second.measured.times,
        verdict=second.measured.verdict,
        error=second.measured.error,
        problem=second.measured.problem,
        why_events=first.measured.why_events | second.measured.why_events,
        seconds=dict(seconds),
    )
    left_out = Counter(first.left_out)
    left_out.update(second.left_out)
    return msgspec.structs.replace(first, measured=measured, left_out=left_out, after=second.after)


def _is_resolved(look: Look, case: str) -> bool:
    """Whether more pairs would change nothing. True too for a case that was not timed."""
    by_side = pair_processes(look.measured, case)
    slow, fast = by_side[BASELINE], by_side[CANDIDATE]
    if len(fast) < 2:
        return not any(look.left_out.get((case, side)) for side in by_side)
    method, floor = method_of((*slow, *fast)), look.measured.floor
    floor_ms = None if floor is None else floor.empty_by(method)
    if ratios.find_bound(median_of_medians(slow), median_of_medians(fast), floor_ms, method) is None:
        return True
    return ratios.ratio(samples_by_process(slow), samples_by_process(fast)).is_resolved
