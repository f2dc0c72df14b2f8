"""The attempts of each instance: what each of them changed and gained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from harness import Verdict
from sessions.state.findings import finding_words, findings_of
from sessions.state.ranking import estimated_slowdown
from sessions.state.speed import attempt_speed, gain, is_apart
from sessions.state.state import AttemptState, InstanceState, SessionState
from suites.python_source import source_lines

from .model import Change

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
    speed = attempt_speed(attempt)
    added, removed = _changed_lines(base.source, attempt.source) if base is not None else (None, None)
    return Change(
        attempt=attempt.attempt,
        origin=attempt.origin,
        base=attempt.base,
        verdict=attempt.verdict,
        error=evaluation.error.first_line if evaluation is not None and evaluation.error is not None else "",
        speed=speed,
        gain=gain(attempt, base) if base is not None else None,
        is_apart=base is not None and is_apart(attempt, base),
        slowdown=estimated_slowdown(evaluation)
        if evaluation is not None and is_correct and speed is None
        else None,
        added=added,
        removed=removed,
        strategy=" ".join(attempt.strategy.split()),
        findings=finding_words(findings_of(attempt)),
        is_best=is_correct and instance.best == attempt.attempt,
    )


@lru_cache(COUNTED)
def _changed_lines(before: str | None, after: str | None) -> tuple[int | None, int | None]:
    """Return the numbers of lines that only the second and only the first text has; a moved line is no change."""
    if before is None or after is None:
        return None, None
    old, new = Counter(source_lines(before)), Counter(source_lines(after))
    return (new - old).total(), (old - new).total()
