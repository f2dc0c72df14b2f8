"""Summary of a session: the last text on the screen."""

from __future__ import annotations

from dataclasses import dataclass

from harness import Verdict
from sessions import AttemptState, SessionState
from sessions.names import short_task
from sessions.state.findings import findings_of
from sessions.state.tally import tally
from sessions.state.winners import best_of

from .certainty import against_words, speed_words, used_share, worst_first
from .narrate import counted
from .plain import table
from .tables import Column
from .timed_against import spread_lines
from .vocabulary import UNKNOWN, duration, grouped, money


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """Result of a session for one task."""

    task: str
    """Full name, `suite/task`."""
    attempts: int
    """Judged attempts."""
    correct: int
    best: AttemptState | None
    """Best judged attempt over all instances, by `best_of`."""

    @property
    def exam(self) -> str:
        """Exam of the best attempt: `confirmed`, `failed exam`, `not examined`; empty if it is not correct."""
        if self.best is None or self.best.verdict is not Verdict.CORRECT:
            return ""
        return str(self.best.confirmation)

    @property
    def tolerance(self) -> str:
        """Share of the tolerance that the worst element of the best attempt used: `80 %`; empty if unknown."""
        evaluation = self.best.evaluation if self.best and self.best.verdict is Verdict.CORRECT else None
        return used_share(worst_first(evaluation)[0].used) if evaluation and evaluation.margins else ""


def outcomes(state: SessionState) -> list[TaskOutcome]:
    """Return one outcome per task, in the session's order; tasks without a judged attempt are included."""
    tasks = list(state.started.tasks) if state.started else []
    tasks += [instance.task for instance in state.instances.values() if instance.task not in tasks]
    results = []
    for task in dict.fromkeys(tasks):
        judged = [
            attempt
            for instance in state.instances.values()
            if instance.task == task
            for attempt in instance.attempts
            if attempt.evaluation is not None
        ]
        counts = tally(judged)
        results.append(TaskOutcome(task, counts.judged, counts.correct, best_of(judged)))
    return results


def summary(state: SessionState) -> str:
    """Return best attempts by task, state, attempts, tokens and cost; the caller adds the next command."""
    name = state.started.session if state.started else UNKNOWN
    rows = [
        (
            short_task(outcome.task),
            verdict_words(outcome.best) if outcome.best else UNKNOWN,
            outcome.exam or UNKNOWN,
            outcome.tolerance or UNKNOWN,
            speed(outcome.best),
            outcome.best.attempt if outcome.best else UNKNOWN,
            str(outcome.correct),
            str(outcome.attempts),
        )
        for outcome in outcomes(state)
    ]
    columns = [
        Column("task", keep=True),
        Column("best verdict", keep=True),
        Column("exam", keep=True, if_known=True),
        Column("tolerance used", right=True, if_known=True, drop=1),
        Column("speedup", right=True, if_known=True),
        Column("best attempt", keep=True),
        Column("correct", right=True, drop=3),
        Column("attempts", right=True, drop=2),
    ]
    counts = tally(state.attempts())
    uncounted = f", {grouped(counts.uncounted)} not counted" if counts.uncounted else ""
    took = f" after {duration(state.worked_s)}"
    spread = [
        f"{outcome.best.attempt} on {words}"
        for outcome in outcomes(state)
        if outcome.best is not None
        for words in spread_lines(outcome.best)
    ]
    return "\n".join(
        [
            table(columns, rows),
            *spread,
            "",
            f"session   {name}, {ending(state)}{took}",
            f"attempts  {grouped(counts.judged)} judged{uncounted}; {spending_words(state)}{device_words(state)}",
        ]
    )


def verdict_words(attempt: AttemptState) -> str:
    """Return the verdict of a judged attempt: `correct`, or `correct, 2 findings`."""
    findings = findings_of(attempt)
    return f"{attempt.verdict}, {counted(len(findings), 'finding')}" if findings else f"{attempt.verdict}"


def spending_words(state: SessionState) -> str:
    """Return `1,840 tokens in, 612 out; cost $0.02`, or why nothing was spent."""
    if not any(attempt.calls for attempt in state.attempts()):
        return "no model was asked; nothing was spent"
    tokens = f"{grouped(state.input_tokens)} tokens in, {grouped(state.output_tokens)} out"
    if state.started is not None and state.started.model.startswith("recorded:"):
        return f"{tokens} (as recorded); nothing was spent"
    if state.cost_usd is None:
        return f"{tokens}; cost unknown (no price configured)"
    unpriced = state.unpriced_calls
    more = f" and {counted(unpriced, 'call')} without a known price" if unpriced else ""
    return f"{tokens}; cost {money(state.cost_usd)}{more}"


def device_words(state: SessionState) -> str:
    """Return `; 3 min 2 s on devices`; empty if the events have no device times."""
    return f"; {duration(state.device_s)} on devices" if state.device_s else ""


def next_line(command: str) -> str:
    """Return the line with the next command, for the end of a summary."""
    return f"{command.split()[1]:<10}{command}"


def speed(attempt: AttemptState | None) -> str:
    """Return the measured speedup (found and confirmed) with its baseline; unknown if nothing was timed."""
    if attempt is None or attempt.evaluation is None:
        return UNKNOWN
    words = speed_words(attempt)
    return f"{words}{against_words(attempt.evaluation)}" if words else UNKNOWN


def ending(state: SessionState) -> str:
    """Return `finished`, `stopped (reason)` or `not finished`, from the events."""
    if state.finished:
        return "finished"
    return f"stopped ({state.stopped})" if state.stopped else "not finished"
