"""What a rung's few samples say of a variant: an estimate of its ratio to the kernel that it varies, never a latency."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from harness.wire import ratios
from harness.wire.clock_messages import BASELINE, CANDIDATE, Measure, Measured
from harness.wire.device import Device
from harness.wire.evaluation import Verdict
from harness.wire.latency import RoughTime
from suites.task import Case

from .conclusions import Timing, why_missing


def roughly_concluded(
    device: Device, measure: Measure, measured: Measured, left_out: Mapping[tuple[str, str], int]
) -> Timing:
    """The estimates of every case that both sides finished; a candidate that was wrong in a call is as wrong as ever."""
    if measured.verdict:
        assert measured.error is not None
        return Timing((), measured.error.message, Verdict(measured.verdict), measured.error)
    floor_ms = measured.floor.empty_ms if measured.floor is not None else 0.0
    rough = tuple(
        found
        for case in measure.task.open_cases
        if (found := _rough(device.name, measure, measured, case.name, ratios.FLOORS * floor_ms)) is not None
    )
    missing = {case.name for case in measure.task.open_cases} - {one.case for one in rough}
    why = why_missing(measured, missing, left_out)
    if not rough:
        return Timing((), f"not estimated: {why or 'no case was measured'}")
    count = sum(one.samples for one in rough)
    words = f"{len(rough)} cases estimated from {count} samples against {measure.against}; no latency"
    return Timing(
        (),
        words,
        notes=(f"the estimate is not whole: {why}",) if why else (),
        rough=rough,
    )


def estimated_ratio(rough: Sequence[RoughTime], cases: Sequence[Case]) -> float | None:
    """The geometric mean over the cases that have a ratio; `None` where none has, or not all of `cases` were timed."""
    if not {case.name for case in cases} <= {one.case for one in rough}:
        return None
    known = [one.ratio for one in rough if one.ratio is not None]
    return statistics.geometric_mean(known) if known else None


def _rough(device: str, measure: Measure, measured: Measured, case: str, least_ms: float) -> RoughTime | None:
    slow, fast = (
        {
            one.pair: [sample for block in one.blocks for sample in block.samples_ms]
            for one in measured.times
            if one.case == case and one.side == side
        }
        for side in (BASELINE, CANDIDATE)
    )
    pairs = sorted(slow.keys() & fast.keys())
    if not pairs:
        return None
    before, now = ([statistics.median(side[pair]) for pair in pairs] for side in (slow, fast))
    short = min(*before, *now) < least_ms
    logs = [math.log(one / other) for one, other in zip(before, now, strict=True)]
    return RoughTime(
        device=device,
        case=case,
        ratio=None if short else math.exp(statistics.fmean(logs)),
        candidate_ms=statistics.median(now),
        samples=sum(len(fast[pair]) for pair in pairs),
        pairs=len(pairs),
        against=measure.against,
    )
