"""Rows of the fleet, picked out of the state. Pure functions: the same state gives the same rows, live and replayed."""

from __future__ import annotations

import math

from harness import Evaluation, Verdict
from harness.node.discovery import CPU
from sessions.names import short_task
from sessions.ranking import Rank, lowest_occupancy, rank, requested_over_minimal
from sessions.state import (
    AttemptState,
    Confirmation,
    InstanceState,
    SessionState,
)
from tui import vocabulary
from tui.certainty import exam_word, left, margin_words, worst_first
from tui.cockpit import standing
from tui.cockpit.lines import Line, Span, clean, fit, line, shorten
from tui.doing import busy_attempts, doing, live_calls
from tui.tables import Cell, Column, Row

AGENT_COLUMNS = (
    Column("agent", 8, 24),
    Column("doing", 16, 16),
    Column("attempt", 7, 7, right=True, drop=4),
    Column("best", 18, 26, drop=1),
    Column("exam", 13, 13, drop=2, if_known=True),
    Column("last", 9, 17, drop=3),
    Column("tokens", 18, 18, drop=5, if_known=True),
    Column("cost", 7, 8, right=True, drop=6, if_known=True),
    Column("commit", 8, 8, drop=7, if_known=True),
)
LEADER_COLUMNS = (
    Column("", 1, 2, right=True),
    Column("attempt", 10, 26),
    Column("result", 18, 28),
    Column("exam", 13, 13, drop=1, if_known=True),
    Column("decision", 10, 10, drop=2, if_known=True),
    Column("margin", 6, 6, right=True, drop=3, if_known=True),
    Column("req/min", 7, 7, right=True, drop=5, if_known=True),
    Column("spills", 6, 6, right=True, drop=6, if_known=True),
    Column("waves", 5, 5, right=True, drop=7, if_known=True),
    Column("made by", 8, 8, drop=4),
)
NOTICE_COLUMNS = (Column("", 7, 7), Column("notice", 20, 200))
LEADERS_A_TASK = 3


def target(state: SessionState) -> str | None:
    """The target whose estimates stand in short places: the session's first."""
    return state.started.targets[0] if state.started and state.started.targets else None


def gpus(state: SessionState) -> list[str]:
    """The session's GPUs, which a person may lend and time on."""
    return [name for name in (state.started.devices if state.started else ()) if name != CPU.name]


def ordered_instances(state: SessionState) -> list[InstanceState]:
    """Instances by the session's order of tasks, then by number: a row never changes its place."""
    tasks = {task: place for place, task in enumerate(state.started.tasks)} if state.started else {}
    return sorted(
        state.instances.values(),
        key=lambda each: (tasks.get(each.task, len(tasks)), each.task, each.instance),
    )


def doing_cell(state: SessionState, instance: InstanceState) -> Cell:
    """The instance's state word, with thousands of characters streamed; of several attempts at once their number."""
    now = doing(state, instance)
    busy = busy_attempts(instance)
    written = sum(len(call.text) + len(call.reasoning) for call in live_calls(instance))
    streamed = f" {written / 1000:.1f}k" if written and now.letter in "gr" else ""
    if len(busy) > 1 and now.style == "busy":
        same = [attempt for attempt in busy if attempt.word == instance.word]
        others = f" +{len(busy) - len(same)}" if len(same) < len(busy) else streamed
        return Cell(f"{len(same)} {now.word}{others}", now.style)
    return Cell(f"{now.word}{streamed}", now.style)


def agent_row(state: SessionState, instance: InstanceState) -> Row:
    """One instance in one line."""
    best = next((each for each in instance.attempts if each.attempt == instance.best), None)
    last = last_judged(instance)
    calls = [call for attempt in instance.attempts for call in attempt.calls]
    read = sum(call.usage.input_tokens or 0 for call in calls)
    written = sum(call.usage.output_tokens or 0 for call in calls)
    prices = [call.cost_usd for call in calls if call.cost_usd is not None]
    number = instance.attempts[-1].number if instance.attempts else 0
    planned = str(sum(state.phases(instance.key))) if state.started else "?"
    commit = next((attempt.commit for attempt in reversed(instance.attempts) if attempt.commit), None)
    return Row(
        instance.key,
        (
            Cell(instance.key),
            doing_cell(state, instance),
            Cell(f"{number}/{planned}"),
            Cell("-", "dim")
            if best is None or best.evaluation is None
            else _standing(state, best, best.evaluation),
            exam_cell(best, instance),
            Cell("-", "dim") if last is None else _verdict(last),
            Cell(vocabulary.tokens(read, written), "dim"),
            Cell(vocabulary.money(sum(prices) if prices else None), "dim"),
            Cell((commit or "-")[:8], "dim"),
        ),
    )


def _standing(state: SessionState, attempt: AttemptState, evaluation: Evaluation) -> Cell:
    if evaluation.verdict is not Verdict.CORRECT:
        return Cell("none correct yet", "dim")
    return Cell(*standing.standing(evaluation, target(state), attempt.timed_twice, attempt.exam))


def exam_cell(attempt: AttemptState | None, instance: InstanceState) -> Cell:
    """What the exam said of an attempt, where it was held or should have been."""
    if attempt is not None and attempt.examining is not None:
        return Cell("under way", "busy")
    word = exam_word(attempt, instance)
    if attempt is None or not word:
        return Cell("-", "dim")
    return Cell(word, standing.confirmation_style(attempt.confirmation))


def _verdict(attempt: AttemptState) -> Cell:
    assert attempt.verdict is not None
    mark = vocabulary.decision_mark(attempt)
    text = f"{vocabulary.letter(attempt.verdict)} {vocabulary.words(attempt.verdict)}"
    return Cell(f"{text} {mark}".rstrip(), standing.verdict_style(attempt.verdict))


class Leaders:
    """The best attempts at each task. Keeps the ranks it worked out, since an evaluation never changes."""

    def __init__(self) -> None:
        self._ranks: dict[str, tuple[Evaluation, Rank]] = {}

    def rank(self, attempt: AttemptState) -> Rank | None:
        """The attempt's rank; `None` while it has no evaluation."""
        evaluation = attempt.evaluation
        if evaluation is None:
            return None
        known = self._ranks.get(attempt.attempt)
        if known is None or known[0] is not evaluation:
            known = self._ranks[attempt.attempt] = (evaluation, rank(evaluation, attempt.source or ""))
        return known[1]

    def rows(self, state: SessionState) -> list[Row]:
        """Per task the best correct attempts, best first; after them what failed the exam, then what a person rejected.

        What was timed again for the exam comes before what was not, by what that gave.

        Equals stand in order of appearance.
        """
        by_task: dict[str, list[tuple[Rank, AttemptState, InstanceState]]] = {}
        for instance in ordered_instances(state):
            found = by_task.setdefault(instance.task, [])
            for attempt in instance.attempts:
                place = self.rank(attempt)
                if place is not None and attempt.verdict is Verdict.CORRECT:
                    if attempt.speedup_confirmed is not None:
                        place = place._replace(speedup=attempt.speedup_confirmed)
                    found.append((place, attempt, instance))
        rows: list[Row] = []
        for task, found in by_task.items():
            best = sorted(found, key=lambda each: (*_held_up(each[1]), each[0]), reverse=True)[
                :LEADERS_A_TASK
            ]
            rows += [self._row(state, number, *each) for number, each in enumerate(best, start=1)]
            if not best:
                none = (Cell(""), Cell(short_task(task), "dim"), Cell("none correct yet", "dim"))
                rows.append(Row(f"task:{task}", none + (Cell(""),) * (len(LEADER_COLUMNS) - len(none))))
        return rows

    @staticmethod
    def _row(
        state: SessionState, number: int, place: Rank, attempt: AttemptState, instance: InstanceState
    ) -> Row:
        assert attempt.evaluation is not None
        decision = attempt.decision
        said = "" if decision is None else "+ accepted" if decision.accepted else "! rejected"
        style = "" if decision is None else "good" if decision.accepted else "bad"
        margins = worst_first(attempt.evaluation)
        return Row(
            attempt.attempt,
            (
                Cell(str(number), "dim"),
                Cell(attempt.attempt),
                _standing(state, attempt, attempt.evaluation),
                exam_cell(attempt, instance),
                Cell(
                    said or ("? waits" if attempt.waiting else "-"),
                    style or ("warn" if attempt.waiting else "dim"),
                ),
                Cell(left(margins[0].used)) if margins else Cell("-", "dim"),
                _known(requested_over_minimal(attempt.evaluation), ".2f"),
                _known(abs(place.spills), ".0f", bad=place.spills < 0),
                _known(lowest_occupancy(attempt.evaluation), "g"),
                Cell(attempt.origin.value, "dim"),
            ),
        )


def _held_up(attempt: AttemptState) -> tuple[bool, bool, bool]:
    """Whether no person rejected it, whether it did not fail the exam, and whether that timed it again."""
    wanted = attempt.decision is None or attempt.decision.accepted
    passed = attempt.confirmation is not Confirmation.NOT_CONFIRMED
    return wanted, passed, attempt.speedup_confirmed is not None


def _known(value: float | None, form: str, *, bad: bool = False) -> Cell:
    """A figure of an attempt; `None` or infinite if it is not known."""
    if value is None or not math.isfinite(value):
        return Cell("-", "dim")
    return Cell(f"{value:{form}}", "bad" if bad else "")


def last_judged(instance: InstanceState) -> AttemptState | None:
    """The attempt whose verdict is the newest: not always the last one, where several are under way at once."""
    judged = [each for each in instance.attempts if each.evaluation is not None]
    return max(judged, key=lambda each: (each.judged_seq, each.number), default=None)


def last_verdict(instance: InstanceState | None, target: str | None, width: int) -> tuple[Line, Line]:
    """The newest verdict, and in one line more why, or what the attempt set out to do."""
    attempt = last_judged(instance) if instance is not None else None
    evaluation = attempt.evaluation if attempt is not None else None
    if attempt is None or evaluation is None:
        return line("no verdict yet", "dim"), ()
    said = standing.standing(evaluation, target)
    mark = vocabulary.decision_mark(attempt)
    error = evaluation.error
    known = margin_words(evaluation) if evaluation.verdict is Verdict.CORRECT else ""
    at = f" at kernel.py line {error.line}" if error is not None and error.line else ""
    head = (
        Span(f"{attempt.attempt}  ", "dim"),
        Span(said.text, f"{said.style} bold"),
        Span(f"{at} {mark}".rstrip(), said.style),
        Span(f"  {known}" if known else "", "dim"),
    )
    if error is None:
        return head, line(fit(" ".join(clean(attempt.strategy).split()), width).rstrip(), "dim")
    # An error says where at its start and what at its end.
    return head, line(shorten(" ".join(clean(error.message).split()), width))


def notice_rows(state: SessionState) -> list[Row]:
    """What a person should know, newest first."""
    styles = {"warning": "warn", "error": "bad"}
    return [
        Row(
            str(number),
            (Cell(level, styles.get(level, "dim")), Cell(line(message)[0].text if message else "")),
        )
        for number, (level, message) in reversed(list(enumerate(state.notices)))
    ]
