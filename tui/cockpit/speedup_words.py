"""A speedup in words with its interval and the cases that it covers, or in words why there is none."""

from __future__ import annotations

from harness import Evaluation, Outcome, Verdict
from harness.node.discovery import CPU
from harness.wire.latency import Bound
from sessions.speedups import Speedup, exact_speedup
from tui import vocabulary

PERFORMANCE = "performance"


def long_speedup(evaluation: Evaluation, speedup: Speedup) -> str:
    """Return `1.84x [1.79, 1.88]`, with the cases if it does not cover all.

    A bound has no interval: before it is the speedup over the cases that were measured exactly.
    """
    if speedup.bound is Bound.NONE:
        covered = _covered(speedup) if speedup.cases < speedup.all_cases else ""
        return vocabulary.times(speedup.value) + _interval(speedup) + covered
    bound = vocabulary.speedup(speedup.value, speedup.bound) + _covered(speedup)
    exact = exact_speedup(evaluation)
    if exact is None:
        return bound
    return f"{vocabulary.times(exact.value)}{_interval(exact)}{_covered(exact)}; {bound}"


def _covered(speedup: Speedup) -> str:
    return f" on {speedup.cases} of {speedup.all_cases} cases"


def _interval(speedup: Speedup) -> str:
    return "" if speedup.interval is None else f" {vocabulary.interval(*speedup.interval)}"


def speedup_style(speedup: Speedup | None) -> str:
    """Return `good` only for a speedup with its whole interval above 1."""
    return "good" if speedup is not None and speedup.is_gain else ""


def missing_speedup(evaluation: Evaluation) -> str:
    """Return why an evaluation has no speedup: timing not reached, no GPU, cases too short, or the judge's own words."""
    if evaluation.verdict is not Verdict.CORRECT:
        failed = next((stage.name for stage in evaluation.stages if stage.ok is False), None)
        return f"timing not reached, the judge stopped at stage {failed}" if failed else "timing not reached"
    if evaluation.latency and all(row.outcome is Outcome.TOO_SHORT for row in evaluation.latency):
        floors = [row.floor_ms for row in evaluation.latency if row.floor_ms is not None]
        floor = f" ({vocabulary.microseconds(max(floors) * 1e3)})" if floors else ""
        return f"all cases too short: both sides take about as long as an empty kernel{floor}"
    if evaluation.device == CPU.name:
        return "no GPU judged it"
    timing = next((stage for stage in evaluation.stages if stage.name == PERFORMANCE), None)
    if timing is not None and timing.detail:
        return timing.detail.removeprefix("not timed: ")
    return f"device {evaluation.device} gave no latency"
