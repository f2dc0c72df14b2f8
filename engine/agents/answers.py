"""The answers that an agent gets: the facts that prompts have, and nothing of the exam, of seeds or of other instances.

Plain dataclasses, so that any protocol can encode them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.methods.orders import last_command, words_for
from engine.prompting.agent_prompt import best_of_agent, judged_of, task_text
from engine.prompting.facts import ErrorFacts, error_facts, failure_line
from engine.prompting.figures import EstimatedRow, Measurements, TimedRow, achieved, measurements, timed_rows
from engine.prompting.prompting import Setting
from harness import Verdict
from sessions.state.state import AttemptState, SessionState

__all__ = [
    "BestAnswer",
    "EstimatedRow",
    "HistoryAnswer",
    "MeasureAnswer",
    "TaskAnswer",
    "TimedRow",
    "VerdictAnswer",
]


@dataclass(frozen=True)
class TaskAnswer:
    """The facts about a task."""

    task: str
    text: str
    """The task, the judge's rules and facts about the hardware, in Markdown."""


@dataclass(frozen=True)
class VerdictAnswer:
    """The facts about a candidate that was sent."""

    attempt: str
    """Its name, for `wait` and `explain`."""
    judged: bool
    """False: call `wait` with the attempt, if `next` says so."""
    verdict: str
    """`correct`, `wrong`, `compile_error`, ...; empty if there is none."""
    next: str
    """The next step, or the present state of the judging."""
    same_as: str
    """The earlier attempt with the same code, which gave the verdict; empty if it was judged."""
    error: ErrorFacts | None
    """Why a candidate failed; `None` for a correct one."""
    figures: Measurements | None
    """Speed and resources of a correct candidate."""
    best: str
    """The best correct attempt so far with its speed; empty if there is none."""
    evaluations_left: int
    person: tuple[str, ...]
    """A person's hints, and decisions about attempts, one line each."""
    session: str


@dataclass(frozen=True)
class HistoryRow:
    """An earlier attempt."""

    attempt: str
    verdict: str
    summary: str
    note: str


@dataclass(frozen=True)
class HistoryAnswer:
    """The attempts of a session, oldest first."""

    attempts: tuple[HistoryRow, ...]
    evaluations_left: int
    person: tuple[str, ...]


@dataclass(frozen=True)
class BestAnswer:
    """The best correct attempt; all fields are empty if there is none."""

    attempt: str
    code: str
    figures: Measurements | None


@dataclass(frozen=True)
class MeasureAnswer:
    """Times of an attempt that were measured again."""

    attempt: str
    device: str
    summary: str
    timed: Sequence[TimedRow]


class Listener:
    """Says each hint of a person once, and decisions while they hold, to the agent of one instance."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self.heard = 0
        """Number of the last command that the agent knows."""

    def news(self, state: SessionState) -> tuple[str, ...]:
        """Returns a person's words for the next answer, one line each."""
        after, self.heard = self.heard, last_command(state)
        return words_for(state, self._instance, after=after, until=self.heard)


def task_answer(setting: Setting) -> TaskAnswer:
    """Returns the facts of a task."""
    return TaskAnswer(setting.task.id, task_text(setting))


def verdict_answer(
    state: SessionState, instance: str, attempt: str, *, next_step: str, person: tuple[str, ...]
) -> VerdictAnswer:
    """Returns the facts about an attempt, which may not have begun."""
    judged = next((entry for entry in judged_of(state, instance) if entry.attempt == attempt), None)
    evaluation = judged.evaluation if judged is not None else None
    best = best_of_agent(state, instance)
    is_correct = evaluation is not None and evaluation.verdict is Verdict.CORRECT
    return VerdictAnswer(
        attempt=attempt,
        judged=evaluation is not None,
        verdict=str(evaluation.verdict) if evaluation is not None else "",
        next=next_step,
        same_as=state.attempt(attempt).same_as if evaluation is not None else "",
        error=error_facts(judged) if judged is not None and evaluation and evaluation.error else None,
        figures=measurements(evaluation) if evaluation is not None and is_correct else None,
        best=f"{best.attempt}: {achieved(best.evaluation)}" if best is not None else "",
        evaluations_left=evaluations_left(state, instance),
        person=person,
        session=state.started.session if state.started is not None else "",
    )


def history_answer(state: SessionState, instance: str, *, person: tuple[str, ...]) -> HistoryAnswer:
    """Returns the judged attempts of an instance in short."""
    rows = tuple(
        HistoryRow(
            judged.attempt,
            str(judged.evaluation.verdict),
            achieved(judged.evaluation) if judged.passed else failure_line(judged),
            judged.strategy,
        )
        for judged in judged_of(state, instance)
    )
    return HistoryAnswer(rows, evaluations_left(state, instance), person)


def best_answer(state: SessionState, instance: str) -> BestAnswer:
    """Returns the best correct attempt of an instance with its code."""
    best = best_of_agent(state, instance)
    if best is None:
        return BestAnswer("", "", None)
    return BestAnswer(best.attempt, best.source, measurements(best.evaluation))


def measure_answer(attempt: AttemptState, device: str) -> MeasureAnswer | None:
    """Returns the latest measurement of an attempt on a GPU; `None` if there is none."""
    measured = next((measured for measured in attempt.spread if measured.device == device), None)
    if measured is None:
        return None
    evaluation = measured.evaluation
    words = achieved(evaluation) if evaluation.verdict is Verdict.CORRECT else str(evaluation.verdict)
    return MeasureAnswer(attempt.attempt, device, words, timed_rows(evaluation))


def evaluations_left(state: SessionState, instance: str) -> int:
    """Returns how many candidates the agent may still send."""
    return max(0, sum(state.phases(instance)) - len(state.sent_to(instance)))
