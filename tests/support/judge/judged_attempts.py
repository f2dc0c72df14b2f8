"""Attempts with a verdict, for tests of what reads one."""

from __future__ import annotations

from harness import Evaluation
from sessions import AttemptState, fold
from sessions.events import AttemptJudged, CandidateProposed, WinnerExamined
from sessions.state.judged import judged_facts


def judged_attempt(
    evaluation: Evaluation, attempt: str = "softmax#1/1", source: str = "", strategy: str = ""
) -> AttemptState:
    """Return an attempt with a verdict."""
    proposed = CandidateProposed(attempt=attempt, source=source, strategy=strategy)
    return fold([proposed, AttemptJudged(attempt=attempt, evaluation=evaluation)]).attempt(attempt)


def judge_again(attempt: AttemptState, evaluation: Evaluation) -> None:
    """Give an attempt another verdict."""
    attempt.judged = judged_facts(AttemptJudged(attempt=attempt.attempt, evaluation=evaluation), None)


def examine(attempt: AttemptState, evaluation: Evaluation) -> None:
    """Give an attempt the result of an exam."""
    attempt.examined = judged_facts(WinnerExamined(attempt=attempt.attempt, evaluation=evaluation), None)
