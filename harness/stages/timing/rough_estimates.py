"""Estimates from a sweep's few samples: the ratio of a variant to the kernel that it varies, never a latency."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from harness.wire.device import Device
from harness.wire.messages.clock import BASELINE, CANDIDATE, Measure, Measured, method_of
from harness.wire.results import ratios
from harness.wire.results.latency import RoughTime
from suites.task import Case

from .conclusions import (
    LeftOut,
    Timing,
    explain_missing,
    list_disturbed_cases,
    pair_processes,
    samples_by_process,
)


def conclude_roughly(device: Device, measure: Measure, measured: Measured, left_out: LeftOut) -> Timing:
    """The estimates of every case that both sides finished; a candidate that was wrong in a timed call is refused."""
    if measured.error is not None:
        return Timing((), measured.error.message, measured.error)
    cases = [case.name for case in measure.task.open_cases]
    estimates = (_estimate_case(device.name, measure, measured, case) for case in cases)
    rough = tuple(estimate for estimate in estimates if estimate is not None)
    missing = set(cases) - {estimate.case for estimate in rough}
    why = explain_missing(measured, missing, left_out)
    disturbed = list_disturbed_cases(measured, missing, left_out)
    if not rough:
        return Timing((), f"not estimated: {why or 'no case was measured'}", disturbed=disturbed)
    count = sum(estimate.samples for estimate in rough)
    return Timing(
        (),
        f"{len(rough)} cases estimated from {count} samples against {measure.against}; no latency",
        notes=(f"the estimate is not whole: {why}",) if why else (),
        rough=rough,
        disturbed=disturbed,
    )


def estimated_ratio(rough: Sequence[RoughTime], cases: Sequence[Case]) -> float | None:
    """The geometric mean over the cases that have a ratio; `None` if no case has one, or not all of `cases` were timed."""
    if not {case.name for case in cases} <= {estimate.case for estimate in rough}:
        return None
    ratios_of_cases = [estimate.ratio for estimate in rough if estimate.ratio is not None]
    return statistics.geometric_mean(ratios_of_cases) if ratios_of_cases else None


def _estimate_case(device: str, measure: Measure, measured: Measured, case: str) -> RoughTime | None:
    by_side = pair_processes(measured, case)
    baseline, candidate = (samples_by_process(by_side[side]) for side in (BASELINE, CANDIDATE))
    if not candidate:
        return None
    baseline_ms, candidate_ms = (
        [statistics.median(samples) for samples in side] for side in (baseline, candidate)
    )
    method = method_of((*by_side[BASELINE], *by_side[CANDIDATE]))
    floor_ms = measured.floor.empty_by(method) if measured.floor is not None else 0.0
    bound = ratios.find_bound(
        statistics.median(baseline_ms), statistics.median(candidate_ms), floor_ms, method
    )
    logs = [math.log(slow / fast) for slow, fast in zip(baseline_ms, candidate_ms, strict=True)]
    return RoughTime(
        device=device,
        case=case,
        ratio=None if bound is None else math.exp(statistics.fmean(logs)),
        candidate_ms=statistics.median(candidate_ms),
        samples=sum(len(samples) for samples in candidate),
        pairs=len(candidate),
        against=measure.against,
    )
