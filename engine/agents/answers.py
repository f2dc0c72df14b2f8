"""The answers that an agent gets about its session, from the fold of its events."""

from __future__ import annotations

from dataclasses import replace

from engine.methods.orders import last_command, words_for
from engine.methods.tools.tool_answers import (
    AsmAnswer,
    BestAnswer,
    HistoryAnswer,
    MeasureAnswer,
    ProfileAnswer,
    TaskAnswer,
    TasksAnswer,
    VerdictAnswer,
    answer_about,
    answer_best,
    answer_history,
    answer_measured,
    best_words,
)
from engine.prompting.agent_prompt import best_of_agent, judged_of, task_parts
from engine.prompting.prompting import Setting
from sessions.state.state import AttemptState, SessionState

__all__ = [
    "AsmAnswer",
    "BestAnswer",
    "HistoryAnswer",
    "MeasureAnswer",
    "ProfileAnswer",
    "TaskAnswer",
    "TasksAnswer",
    "VerdictAnswer",
]


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
    """Returns the facts of a first prompt, without its request and without the format of replies."""
    return TaskAnswer(setting.task.id, task_parts(setting).text)


def verdict_answer(
    state: SessionState, instance: str, attempt: str, *, next_step: str, person: tuple[str, ...]
) -> VerdictAnswer:
    """Returns the facts about an attempt, which may not have begun."""
    session = state.started.session if state.started is not None else ""
    remaining = evaluations_left(state, instance)
    best = best_of_agent(state, instance)
    judged = next((entry for entry in judged_of(state, instance) if entry.attempt == attempt), None)
    if judged is None:
        words = best_words(best, attempt)
        return VerdictAnswer(attempt, False, "", next_step, "", None, None, words, remaining, person, session)
    same_as = state.attempt(attempt).same_as
    answer = answer_about(judged, best, same_as=same_as, next_step=next_step, remaining=remaining)
    return replace(answer, person=person, session=session)


def history_answer(state: SessionState, instance: str, *, person: tuple[str, ...]) -> HistoryAnswer:
    """Returns the judged attempts of an instance in short."""
    judged = list(judged_of(state, instance))
    return answer_history(judged, remaining=evaluations_left(state, instance), person=person)


def best_answer(state: SessionState, instance: str) -> BestAnswer:
    """Returns the best correct attempt of an instance with its code."""
    return answer_best(list(judged_of(state, instance)))


def measure_answer(attempt: AttemptState, device: str) -> MeasureAnswer | None:
    """Returns the latest measurement of an attempt on a GPU; `None` if there is none."""
    measured = next((measured for measured in attempt.spread if measured.device == device), None)
    return None if measured is None else answer_measured(attempt.attempt, device, measured.evaluation)


def evaluations_left(state: SessionState, instance: str) -> int:
    """Returns how many candidates the agent may still send."""
    return max(0, sum(state.phases(instance)) - len(state.sent_to(instance)))
