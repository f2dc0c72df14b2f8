"""Summary of a session: the last text on the screen."""

from __future__ import annotations

from dataclasses import dataclass

from engine.tuning.best_by_case import best_by_case
from harness import Verdict
from sessions import AttemptState, SessionState
from sessions.names import short_task
from sessions.state.findings import findings_of
from sessions.state.tally import tally
from sessions.state.winners import bests_by_task
from tui.facts.endings import session_ending
from tui.facts.evaluation.best_by_case import FIELDS as CASE_FIELDS
from tui.facts.evaluation.best_by_case import MEASURED, TITLE
from tui.facts.evaluation.certainty import against_words, speed_words, used_share, worst_first
from tui.facts.evaluation.spread import spread_lines
from tui.facts.spending import session_device_words, session_spent_words
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import UNKNOWN, counted, duration, grouped

from .plain import listing


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """Result of a session for one task."""

    task: str
    """Full name, `suite/task`."""
    attempts: int
    """Judged attempts."""
    correct: int
    best: AttemptState | None
    """Best judged attempt over all instances, by `bests_by_task`."""

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
    bests = bests_by_task(state)
    results = []
    for task in state.tasks():
        counts = tally(
            attempt
            for instance in state.instances.values()
            if instance.task == task
            for attempt in instance.attempts
        )
        results.append(TaskOutcome(task, counts.judged, counts.correct, bests.get(task)))
    return results


FIELDS: tuple[Field[TaskOutcome], ...] = (
    Field(Column("task", keep=True), lambda outcome: short_task(outcome.task)),
    Field(Column("best verdict", keep=True), lambda outcome: verdict_words(outcome.best)),
    Field(Column("exam", keep=True, if_known=True), lambda outcome: outcome.exam),
    Field(Number("tolerance used", if_known=True, drop=1), lambda outcome: outcome.tolerance),
    Field(Number("speedup", if_known=True), lambda outcome: speed(outcome.best)),
    Field(Column("best attempt", keep=True), lambda outcome: outcome.best.attempt if outcome.best else ""),
    Field(Number("correct", drop=3), lambda outcome: str(outcome.correct)),
    Field(Number("attempts", drop=2), lambda outcome: str(outcome.attempts)),
)


def summary(state: SessionState) -> str:
    """Return best attempts by task, state, attempts, tokens and cost; the caller adds the next command."""
    name = state.started.session if state.started else UNKNOWN
    counts = tally(state.attempts())
    uncounted = f", {grouped(counts.uncounted)} not counted" if counts.uncounted else ""
    spent = "; ".join(filter(None, (session_spent_words(state), session_device_words(state))))
    spread = [
        f"{outcome.best.attempt} on {words}"
        for outcome in outcomes(state)
        if outcome.best is not None
        for words in spread_lines(outcome.best)
    ]
    return "\n".join(
        [
            listing(FIELDS, outcomes(state)),
            *spread,
            *_by_case(state),
            "",
            f"session   {name}, {session_ending(state)} after {duration(state.worked_s)} of work",
            f"attempts  {grouped(counts.judged)} judged{uncounted}; {spent}",
        ]
    )


def _by_case(state: SessionState) -> list[str]:
    """Return the best configuration of each case of a session with `--by case`."""
    if state.started is None or state.started.options.by != "case":
        return []
    bests = [best for task in state.tasks() for best in best_by_case(state, task)]
    return ["", f"{TITLE}:", listing(CASE_FIELDS, bests), MEASURED] if bests else []


def verdict_words(attempt: AttemptState | None) -> str:
    """Return the verdict of a judged attempt: `correct`, or `correct, 2 findings`."""
    if attempt is None:
        return ""
    findings = findings_of(attempt)
    return f"{attempt.verdict}, {counted(len(findings), 'finding')}" if findings else f"{attempt.verdict}"


def speed(attempt: AttemptState | None) -> str:
    """Return the measured speedup (found and confirmed) with its baseline; empty if nothing was timed."""
    words = "" if attempt is None else speed_words(attempt)
    return f"{words}{against_words(attempt.evaluation)}" if words and attempt and attempt.evaluation else ""


def next_line(command: str) -> str:
    """Return the line with the next command, for the end of a summary."""
    return f"{command.split()[1]:<10}{command}"
