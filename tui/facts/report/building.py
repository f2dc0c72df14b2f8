"""Builds the report of a session from its state. Pure: the same state gives the same report, live and in replay."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.state.speed import speed_of, timed_evaluation
from sessions.state.state import AttemptState, SessionState
from sessions.state.tally import tally
from sessions.state.winners import bests_by_task
from tui.facts.evaluation.provenance import distinct_provenances, provenance_words
from tui.facts.session_words import method_words, session_ending, verification_words
from tui.facts.spending import session_spent_words

from .changes import changes_of
from .metrics import TaskMetrics, task_metrics
from .model import SessionReport, Summary
from .tallies import judged_attempts, stage_counts, task_costs, verdict_counts
from .winners import cases_of, decisions_of, estimates_of, has_gpu, is_measured, unsolved_of, winners_of


def report_of(state: SessionState) -> SessionReport:
    """Return the report of a session."""
    bests = bests_by_task(state)
    winners = winners_of(state, bests)
    attempts = {attempt.attempt: attempt for attempt in bests.values()}
    judged = judged_attempts(state.attempts())
    metrics = task_metrics(state)
    return SessionReport(
        summary=_summary(state, metrics[-1:], list(bests.values())),
        winners=winners,
        unsolved=tuple(unsolved_of(state, bests)),
        decisions=decisions_of(state),
        cases=tuple(case for winner in winners for case in cases_of(winner, attempts[winner.attempt])),
        changes=tuple(changes_of(state)),
        stages=stage_counts(judged),
        verdicts=verdict_counts(judged),
        costs=tuple(task_costs(state)),
        estimates=tuple(
            estimate
            for winner in winners
            if winner.speed is None
            for estimate in estimates_of(winner, attempts[winner.attempt])
        ),
        metrics=tuple(metrics),
    )


def _summary(state: SessionState, total: Sequence[TaskMetrics], bests: Sequence[AttemptState]) -> Summary:
    started = state.started
    attempts = state.attempts()
    judged = map(timed_evaluation, bests)
    timed = [
        evaluation for evaluation in judged if evaluation is not None and speed_of(evaluation) is not None
    ]
    return Summary(
        session=started.session if started else "",
        title=state.title,
        state=session_ending(state),
        method=method_words(started.method, started.options) if started else "",
        model=started.model if started else "",
        against=(started.against if started else "") or (total[0].against if total else ""),
        tasks=len(started.tasks) if started else 0,
        solved=total[0].solved if total else 0,
        confirmed=total[0].confirmed if total else None,
        accepted=sum(attempt.decision is not None and attempt.decision.accepted for attempt in attempts),
        rejected=sum(attempt.decision is not None and not attempt.decision.accepted for attempt in attempts),
        waiting=sum(attempt.waiting for attempt in attempts),
        tally=tally(attempts),
        spending=session_spent_words(state),
        cost_usd=state.cost_usd,
        device_s=state.device_s,
        worked_s=state.worked_s,
        timing="measured" if is_measured(state) else "not measured yet" if has_gpu(state) else "no GPU",
        verification=verification_words(state.verification),
        provenances=tuple(
            provenance_words(provenance, brief=True) for provenance in distinct_provenances(timed)
        ),
    )
