"""How a session ended: what stands on the screen last."""

from __future__ import annotations

from dataclasses import dataclass

from harness import Verdict
from sessions import AttemptState, SessionState
from sessions.names import short_task
from sessions.winners import best_of

from .certainty import against_words, left, speedup_words, worst_first
from .narrate import counted
from .plain import UNKNOWN, Column, count, duration, money, table
from .timed_against import spread_lines


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What a session has to show for one task."""

    task: str
    """Full name."""
    attempts: int
    """Judged ones."""
    correct: int
    best: AttemptState | None
    """Its best judged attempt, over all instances, that no person rejected and, where one can be had, no exam failed."""

    @property
    def exam(self) -> str:
        """What the exam said of the best: `confirmed`, `not confirmed`, `not examined`; empty where none is correct."""
        if self.best is None or self.best.verdict is not Verdict.CORRECT:
            return ""
        return str(self.best.confirmation)

    @property
    def margin(self) -> str:
        """The worst margin of the best; empty where none is known."""
        evaluation = self.best.evaluation if self.best and self.best.verdict is Verdict.CORRECT else None
        return left(worst_first(evaluation)[0].used) if evaluation and evaluation.margins else ""


def outcomes(state: SessionState) -> list[TaskOutcome]:
    """One a task, in the session's order; tasks that nothing was judged for yet stand there too."""
    tasks = list(state.started.tasks) if state.started else []
    tasks += [each.task for each in state.instances.values() if each.task not in tasks]
    found = []
    for task in dict.fromkeys(tasks):
        judged = [
            attempt
            for instance in state.instances.values()
            if instance.task == task
            for attempt in instance.attempts
            if attempt.evaluation is not None
        ]
        correct = sum(each.verdict is Verdict.CORRECT for each in judged)
        found.append(TaskOutcome(task, len(judged), correct, best_of(judged)))
    return found


def summary(state: SessionState) -> str:
    """Session, each task's best verdict, attempts made; the caller adds what to do next."""
    name = state.started.session if state.started else UNKNOWN
    rows = [
        (
            short_task(each.task),
            f"{each.best.verdict}" if each.best else UNKNOWN,
            each.exam or UNKNOWN,
            each.margin or UNKNOWN,
            speed(each.best),
            each.best.attempt if each.best else UNKNOWN,
            str(each.correct),
            str(each.attempts),
        )
        for each in outcomes(state)
    ]
    columns = [
        Column("task", keep=True),
        Column("best verdict", keep=True),
        Column("exam", keep=True, if_known=True),
        Column("margin", right=True, if_known=True, drop=1),
        Column("speedup", right=True, if_known=True),
        Column("best attempt", keep=True),
        Column("correct", right=True, drop=3),
        Column("attempts", right=True, drop=2),
    ]
    attempts = sum(1 for attempt in state.attempts() if attempt.evaluation is not None)
    tokens = f"{count(state.input_tokens)} tokens in, {count(state.output_tokens)} out"
    cost = "cost unknown (no price configured)" if state.cost_usd is None else f"cost {money(state.cost_usd)}"
    if state.cost_usd is not None and state.unpriced_calls:
        cost += f" and {counted(state.unpriced_calls, 'call')} without a known price"
    if state.started is not None and state.started.model.startswith("recorded:"):
        tokens, cost = f"{tokens} (as recorded)", "nothing was spent"
    if not any(attempt.calls for attempt in state.attempts()):
        tokens, cost = "no model was asked", "nothing was spent"
    took = ""
    if state.started_wall is not None and state.last_wall is not None:
        took = f" after {duration(state.last_wall - state.started_wall)}"
    spread = [
        f"{each.best.attempt} on {words}"
        for each in outcomes(state)
        if each.best is not None
        for words in spread_lines(each.best)
    ]
    return "\n".join(
        [
            table(columns, rows),
            *spread,
            "",
            f"session   {name}, {ending(state)}{took}",
            f"attempts  {count(attempts)} judged; {tokens}; {cost}",
        ]
    )


def next_line(command: str) -> str:
    """What to do next, to stand below a summary."""
    return f"{command.split()[1]:<10}{command}"


def speed(attempt: AttemptState | None) -> str:
    """The measured speedup, found and confirmed, and what it is against; unknown where nothing was timed."""
    if attempt is None or attempt.evaluation is None:
        return UNKNOWN
    known = speedup_words(attempt.evaluation, attempt.timed_twice)
    return f"{known}{against_words(attempt.evaluation)}" if known else UNKNOWN


def ending(state: SessionState) -> str:
    """How it ended, as far as its events tell."""
    if state.finished:
        return "finished"
    return f"stopped ({state.stopped})" if state.stopped else "not finished"
