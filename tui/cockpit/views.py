"""Rows of the fleet, picked out of the state. Pure functions: the same state gives the same rows, live and replayed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness import Evaluation, Verdict
from harness.node.discovery import CPU
from sessions.names import short_task, split_attempt
from sessions.ranking import Rank, lowest_occupancy, rank, requested_over_minimal
from sessions.state import (
    AttemptState,
    CallState,
    Confirmation,
    InstanceState,
    SessionState,
)
from tui.certainty import exam_word, left, margin_words, worst_first
from tui.cockpit import wording
from tui.cockpit.grid import Cell, Column, Row
from tui.cockpit.lines import Line, Span, cells, clean, fit, joined, line, shorten
from tui.method_words import method_words
from tui.timed_against import timing_words

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

ENDINGS = {
    "iterations": "done",
    "recording_exhausted": "recording ended",
    "budget": "budget spent",
    "infra_error": "our own failure",
}
"""Reasons why an instance ended, in a column's width, where they are not the words themselves."""
AT_WORK = frozenset({"generate", "optimize", "reflect"})
"""Words of instances that wait for a model's words."""


def target(state: SessionState) -> str | None:
    """The target whose estimates stand in short places: the session's first."""
    return state.started.targets[0] if state.started and state.started.targets else None


def gpus(state: SessionState) -> list[str]:
    """The session's GPUs, which a person may lend and time on."""
    return [name for name in (state.started.devices if state.started else ()) if name != CPU.name]


def at_work(instance: InstanceState) -> list[AttemptState]:
    """The attempts that do something now; with some methods several at once."""
    return [each for each in instance.attempts if each.word != "wait"]


def live_calls(instance: InstanceState) -> list[CallState]:
    """The calls whose words are arriving."""
    last = [each.calls[-1] for each in at_work(instance) if each.word in AT_WORK and each.calls]
    return [call for call in last if call.live]


def model_trouble(state: SessionState) -> str:
    """Why a model gives no words at the moment, and how many calls that holds up; empty if none."""
    held = [
        call
        for instance in state.instances.values()
        for call in live_calls(instance)
        if call.retries and not call.text_words and not call.reasoning_words
    ]
    if not held:
        return ""
    reason = held[-1].last_retry.partition(":")[0].replace("_", " ")
    return f"MODEL {reason}, {len(held)} {'waits' if len(held) == 1 else 'wait'}"


def ordered_instances(state: SessionState) -> list[InstanceState]:
    """Instances by the session's order of tasks, then by number: a row never changes its place."""
    tasks = {task: place for place, task in enumerate(state.started.tasks)} if state.started else {}
    return sorted(
        state.instances.values(),
        key=lambda each: (tasks.get(each.task, len(tasks)), each.task, each.instance),
    )


def doing(instance: InstanceState) -> Cell:
    """The instance's word, with thousands of characters streamed while a model writes; of several attempts their number."""
    busy, calls = at_work(instance), live_calls(instance)
    written = sum(len(call.text) + len(call.reasoning) for call in calls)
    streamed = f" {written / 1000:.1f}k" if written else ""
    if len(busy) > 1:
        same = [each for each in busy if each.word == instance.word]
        others = f" +{len(busy) - len(same)}" if len(same) < len(busy) else streamed
        return Cell(f"{len(same)} {instance.word}{others}", "warn" if instance.word == "person" else "busy")
    if calls:
        if calls[0].retries and not written:
            return Cell(f"no model, try {calls[0].retries + 1}", "warn")
        return Cell(f"{instance.word}{streamed}", "busy")
    if instance.finished:
        said = ENDINGS.get(instance.finished, instance.finished.replace("_", " "))
        return Cell(said, "bad" if instance.word == "failed" else "dim")
    style = {"person": "warn", "done": "dim", "wait": "dim", "failed": "bad"}.get(instance.word, "busy")
    return Cell("waits for you" if instance.word == "person" else instance.word, style)


def doing_now(state: SessionState, instance: InstanceState) -> Cell:
    """The instance's word; what a person ordered, where that is what it waits for."""
    asked = {split_attempt(each.attempt).instance for each in state.measures}
    if not instance.finished and instance.key in state.stops:
        return Cell("stopping", "warn")
    if instance.word in ("wait", "done") and instance.key in asked:
        return Cell("timed again", "busy")
    if is_idle_on_hold(state, instance):
        return Cell("paused", "warn")
    return doing(instance)


def is_idle_on_hold(state: SessionState, instance: InstanceState) -> bool:
    """True if a person paused the instance and what ran has finished."""
    return not instance.finished and instance.word == "wait" and state.is_on_hold(instance.key)


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
            doing_now(state, instance),
            Cell(f"{number}/{planned}"),
            Cell("-", "dim")
            if best is None or best.evaluation is None
            else _standing(state, best, best.evaluation),
            exam_cell(best, instance),
            Cell("-", "dim") if last is None else _verdict(last),
            Cell(wording.tokens(read, written), "dim"),
            Cell(wording.cost(sum(prices) if prices else None), "dim"),
            Cell((commit or "-")[:8], "dim"),
        ),
    )


def _standing(state: SessionState, attempt: AttemptState, evaluation: Evaluation) -> Cell:
    if evaluation.verdict is not Verdict.CORRECT:
        return Cell("none correct yet", "dim")
    return Cell(*wording.standing(evaluation, target(state), attempt.timed_twice, attempt.exam))


def exam_cell(attempt: AttemptState | None, instance: InstanceState) -> Cell:
    """What the exam said of an attempt, where it was held or should have been."""
    if attempt is not None and attempt.examining is not None:
        return Cell("under way", "busy")
    word = exam_word(attempt, instance)
    if attempt is None or not word:
        return Cell("-", "dim")
    return Cell(word, wording.confirmation_style(attempt.confirmation))


def _verdict(attempt: AttemptState) -> Cell:
    assert attempt.verdict is not None
    mark = wording.decision_mark(attempt)
    text = f"{wording.letter(attempt.verdict)} {wording.words(attempt.verdict)}"
    return Cell(f"{text} {mark}".rstrip(), wording.verdict_style(attempt.verdict))


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
    said = wording.standing(evaluation, target)
    mark = wording.decision_mark(attempt)
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


def header(state: SessionState, *, name: str, word: Span, extra: Sequence[Span], width: int) -> Line:
    """The session in one line; what matters least goes first when it does not fit.

    `word` says what the session does; `extra` (mouse off, read only, replay) stays longest.
    """
    started = state.started
    correct = {each.task for each in state.instances.values() if _solved(each)}
    said = {each.task for each in state.instances.values() for one in each.attempts if is_confirmed(one)}
    confirmed = f", {len(said)} confirmed" if said else ""
    unpriced = (
        f" + {state.unpriced_calls} unpriced" if state.cost_usd is not None and state.unpriced_calls else ""
    )
    parts: list[tuple[int, Line]] = [
        (0, (Span(name, "key"),)),
        (1, (word,)),
        (2, tuple(extra)),
        (1, line(model_trouble(state), "bad")),
        (5, line(f"{method_words(started.method, started.options)} {started.model}") if started else ()),
        (4, line(wording.clock(state.worked_s)) if started else ()),
        (3, line(f"{len(correct)}/{len(started.tasks)} tasks correct{confirmed}") if started else ()),
        (2, line(timing_words(started)) if started and timing_words(started) else ()),
        (6, line(wording.tokens(state.input_tokens, state.output_tokens))),
        (7, line(f"cost {wording.cost(state.cost_usd)}{unpriced}") if state.cost_usd is not None else ()),
        (2, line(f"{state.skipped_events} events unread", "warn") if state.skipped_events else ()),
    ]
    kept = [part for part in parts if part[1]]
    while len(kept) > 1 and cells(joined([spans for _, spans in kept])) > width:
        kept.remove(max(kept, key=lambda part: part[0]))
    return joined([spans for _, spans in kept])


def is_confirmed(attempt: AttemptState) -> bool:
    """Whether the attempt passed its exam."""
    return attempt.confirmation is Confirmation.CONFIRMED


def _solved(instance: InstanceState) -> bool:
    best = next((each for each in instance.attempts if each.attempt == instance.best), None)
    return best is not None and best.verdict is Verdict.CORRECT
