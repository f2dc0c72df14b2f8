"""The attempts of each instance: what each of them changed and gained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from harness import Evaluation, Verdict
from sessions.state import AttemptState, InstanceState, SessionState
from suites.python_source import source_lines

from .model import Change
from .speedups import figures_of, geomean

COUNTED = 4096
"""Pairs of texts with remembered counts: a live report asks for them again with each verdict."""


def changes_of(state: SessionState) -> Iterator[Change]:
    """Yield every attempt, by instance in order of appearance, then by number."""
    attempts = {attempt.attempt: attempt for attempt in state.attempts()}
    for instance in state.instances.values():
        for attempt in instance.attempts:
            base = attempts.get(attempt.base) if attempt.base is not None else None
            yield _change(instance, attempt, base)


def _change(instance: InstanceState, attempt: AttemptState, base: AttemptState | None) -> Change:
    evaluation = attempt.evaluation
    is_correct = evaluation is not None and evaluation.verdict is Verdict.CORRECT
    speedup = figures_of(evaluation) if evaluation is not None and is_correct else None
    added, removed = _changed_lines(base.source, attempt.source) if base is not None else (None, None)
    return Change(
        task=instance.task,
        instance=instance.key,
        attempt=attempt.attempt,
        number=attempt.number,
        origin=attempt.origin,
        base=attempt.base,
        verdict=attempt.verdict,
        error=evaluation.error.first_line if evaluation is not None and evaluation.error is not None else "",
        speedup=speedup,
        gain=_gain(base.evaluation if base is not None else None, evaluation),
        slowdown=_slowdown(evaluation) if evaluation is not None and is_correct and speedup is None else None,
        added=added,
        removed=removed,
        strategy=" ".join(attempt.strategy.split()),
        is_best=is_correct and instance.best == attempt.attempt,
    )


@lru_cache(COUNTED)
def _changed_lines(before: str | None, after: str | None) -> tuple[int | None, int | None]:
    """Return the numbers of lines that only the second and only the first text has; a moved line is no change."""
    if before is None or after is None:
        return None, None
    old, new = Counter(source_lines(before)), Counter(source_lines(after))
    return (new - old).total(), (old - new).total()


def _gain(base: Evaluation | None, evaluation: Evaluation | None) -> float | None:
    """Return the time of the base over the attempt's, minus 1; `None` if no device timed a case of both exactly."""
    if base is None or evaluation is None:
        return None
    times = {(row.device, row.case): row.candidate_ms for row in base.latency if not row.bound.sign}
    ratios = [
        times[row.device, row.case] / row.candidate_ms
        for row in evaluation.latency
        if not row.bound.sign and row.speedup is not None and (row.device, row.case) in times
    ]
    return geomean(ratios) - 1 if ratios else None


def _slowdown(evaluation: Evaluation) -> float | None:
    """Return the upper over the lower bound of the first target's estimates, geometric mean over the cases."""
    ratios = [
        estimate.high_us / estimate.low_us
        for estimate in evaluation.estimate
        if estimate.target == evaluation.estimate[0].target and estimate.low_us > 0 and estimate.high_us > 0
    ]
    return geomean(ratios) if ratios else None
