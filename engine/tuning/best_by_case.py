"""The best configuration of each case, from the judged attempts of a session of `tune`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness import Evaluation, Latency, Verdict
from harness.wire.results.ratios import TIE
from sessions.names import split_attempt
from sessions.state.ranking import in_steps
from sessions.state.speed import are_comparable, timed_evaluation
from sessions.state.state import AttemptState, Confirmation, SessionState

from .launch_config import Config, launch_config


@dataclass(frozen=True, slots=True)
class CaseBest:
    """A case with the attempt that has the best configuration for it."""

    case: str
    attempt: str
    config: Config
    evaluation: Evaluation
    latency: Latency
    is_faster: bool = False
    """True if it was measured as faster than the start of the sweep."""


def best_by_case(state: SessionState, task: str) -> list[CaseBest]:
    """Returns the best configuration of each open case of a task, in the order of the cases.

    It is the start of the sweep, unless the whole interval of another correct attempt is faster than the start's time. Empty
    without times, and for other methods than `tune`.
    """
    judged = list(_judged(state, task))
    if not judged or split_attempt(judged[0][0].attempt).number != 1:  # the start failed its exam
        return []
    start = judged[0]
    judged = [pair for pair in judged if are_comparable(start[1], pair[1])]
    cases = dict.fromkeys(latency.case for _, evaluation in judged for latency in evaluation.latency)
    return [best for case in cases if (best := _fastest(case, judged)) is not None]


def _fastest(case: str, judged: Sequence[tuple[AttemptState, Evaluation]]) -> CaseBest | None:
    """The fastest attempt at a case; `None` if the start was not timed there and nothing is faster."""
    timed = [
        (latency, CaseBest(case, attempt.attempt, launch_config(attempt.source or ""), evaluation, latency))
        for attempt, evaluation in judged
        for latency in evaluation.latency
        if latency.case == case
    ]
    at_start = [pair for pair in timed if pair[1].attempt == judged[0][0].attempt]
    to_beat = (at_start[0][0].speedup if at_start else None) or 1.0
    faster = [
        best
        for latency, best in timed
        if latency.ci is not None and latency.ci[0] > to_beat and best.attempt != judged[0][0].attempt
    ]
    if faster:
        fastest = max(faster, key=lambda best: in_steps(best.latency.speedup or 1.0, TIE))
        return replace(fastest, is_faster=True)
    return at_start[0][1] if at_start else None


def _judged(state: SessionState, task: str) -> Iterator[tuple[AttemptState, Evaluation]]:
    """Yield the correct attempts of a sweep with the evaluation with the times that count, the start first."""
    if state.started is None or state.started.method != "tune":
        return
    for attempt in state.attempts():
        evaluation = timed_evaluation(attempt)
        if (
            state.instances[split_attempt(attempt.attempt).instance].task == task
            and evaluation is not None
            and attempt.verdict is Verdict.CORRECT
            and attempt.confirmation is not Confirmation.NOT_CONFIRMED
        ):
            yield attempt, evaluation
