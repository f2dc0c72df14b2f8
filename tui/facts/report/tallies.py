"""Counts over the attempts of a session: stages, verdicts, and what each task cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness import STAGES, Verdict
from sessions.state.state import AttemptState, SessionState
from sessions.state.tally import tally
from tui.facts.spending import spending_of

from .model import StageCount, TaskCost, VerdictCount


def judged_attempts(attempts: Iterable[AttemptState]) -> list[AttemptState]:
    """Return the attempts with a verdict, in the order of their verdicts."""
    judged = [attempt for attempt in attempts if attempt.verdict is not None]
    return sorted(judged, key=lambda attempt: attempt.judged_seq)


def stage_counts(judged: Sequence[AttemptState]) -> tuple[StageCount, ...]:
    """Return how many attempts with a verdict that counts reached and passed each stage of the judge."""
    outcomes = [
        {stage.name: stage.ok for stage in attempt.evaluation.stages if stage.ok is not None}
        for attempt in judged
        if attempt.evaluation is not None and attempt.evaluation.verdict.counted
    ]
    return tuple(
        StageCount(
            stage,
            sum(stage in outcome for outcome in outcomes),
            sum(outcome.get(stage, False) for outcome in outcomes),
        )
        for stage in STAGES
    )


def verdict_counts(judged: Sequence[AttemptState]) -> tuple[VerdictCount, ...]:
    """Return the attempts by verdict and class of error: correct first, then the most frequent."""
    counted = tally(judged).judged
    groups: dict[tuple[Verdict, str], list[AttemptState]] = {}
    for attempt in judged:
        if attempt.evaluation is not None:
            error = attempt.evaluation.error
            kind = error.kind if error is not None else ""
            groups.setdefault((attempt.evaluation.verdict, kind), []).append(attempt)
    counts = []
    for (verdict, error_class), attempts in groups.items():
        newest = attempts[-1]
        report = newest.evaluation.error if newest.evaluation is not None else None
        message = report.first_line if report is not None else ""
        share = len(attempts) / counted if verdict.counted else None
        counts.append(VerdictCount(verdict, error_class, len(attempts), share, newest.attempt, message))
    return tuple(sorted(counts, key=lambda count: (count.verdict is not Verdict.CORRECT, -count.attempts)))


def task_costs(state: SessionState) -> Iterator[TaskCost]:
    """Yield what the attempts of each task spent, in the session's order."""
    attempts: dict[str, list[AttemptState]] = {task: [] for task in state.tasks()}
    for instance in state.instances.values():
        attempts[instance.task] += instance.attempts
    for task, own in attempts.items():
        verdicts = [
            attempt.verdict
            for attempt in judged_attempts(own)
            if attempt.verdict is not None and attempt.verdict.counted
        ]
        solved = Verdict.CORRECT in verdicts
        yield TaskCost(
            task=task,
            attempts=len(verdicts),
            to_first_correct=verdicts.index(Verdict.CORRECT) + 1 if solved else None,
            spent=spending_of(own),
        )
