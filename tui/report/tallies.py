"""Counts over the attempts of a session: stages, verdicts, and what each task cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness import STAGES, Verdict
from sessions.state.state import AttemptState, SessionState
from sessions.state.tally import tally
from tui.reporting import known_sum
from tui.spent import cost_of, device_s_of

from .model import StageCount, TaskCost, VerdictCount
from .winners import tasks_of


def judged_attempts(state: SessionState) -> list[AttemptState]:
    """Return the attempts with a verdict, in the order of their verdicts."""
    judged = [attempt for attempt in state.attempts() if attempt.verdict is not None]
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


def task_costs(state: SessionState, judged: Sequence[AttemptState]) -> Iterator[TaskCost]:
    """Yield what the attempts of each task spent, in the session's order."""
    tasks = {
        attempt.attempt: instance.task
        for instance in state.instances.values()
        for attempt in instance.attempts
    }
    for task in tasks_of(state):
        attempts = [attempt for attempt in state.attempts() if tasks[attempt.attempt] == task]
        verdicts = [
            attempt.verdict
            for attempt in judged
            if tasks[attempt.attempt] == task and attempt.verdict is not None and attempt.verdict.counted
        ]
        first = verdicts.index(Verdict.CORRECT) + 1 if Verdict.CORRECT in verdicts else None
        yield TaskCost(
            task=task,
            solved=first is not None,
            attempts=len(verdicts),
            to_first_correct=first,
            input_tokens=known_sum([attempt.usage.input_tokens for attempt in attempts]),
            output_tokens=known_sum([attempt.usage.output_tokens for attempt in attempts]),
            cost_usd=cost_of(attempts),
            device_s=device_s_of(attempts),
        )
