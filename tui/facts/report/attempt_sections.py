"""The sections of a report about its attempts, one by one: what each changed and gained, and what people decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from harness import Verdict
from harness.wire.results.ratios import TIE
from sessions.names import split_attempt
from sessions.state.cases import gain, is_apart
from sessions.state.findings import finding_words, findings_of
from sessions.state.ranking import why_below
from sessions.state.speed import Speed
from sessions.state.state import AttemptState, SessionState
from sessions.state.winners import accepted_attempt
from suites.source.python_source import source_lines
from tui.facts.attempt import origin_words, strategy_words
from tui.facts.endings import pending_word
from tui.facts.evaluation.counted import traffic_words
from tui.facts.tables import Cell, Column, Field, Number
from tui.facts.text_diff import count_changes, diff_words
from tui.facts.vocabulary import (
    FINDING,
    REJECTED,
    decision_mark,
    letter,
    moment,
    percent_change,
    verdict_style,
    words,
)

from .model import SessionReport
from .section import Section, section_of
from .winner_sections import cases_words, interval_cell, speed_cell

TIE_WORDS = "Speedups within 1 % tie: the earlier attempt stays the best."
COUNTED = 4096
"""Pairs of texts with remembered counts: a live report asks for them again with each verdict."""


class BaseChange(NamedTuple):
    """One attempt of an instance, compared with its base."""

    attempt: AttemptState
    base: AttemptState | None
    is_best: bool
    """True if it is the best of its instance."""
    speed: Speed | None
    pending: str
    """Why it has no verdict: `in progress`, `no further reply`."""

    @property
    def gain(self) -> float | None:
        """How much faster than its base: the ratio of their speeds, minus 1."""
        return gain(self.attempt, self.base) if self.base is not None else None

    @property
    def is_apart(self) -> bool:
        """True if it is not compared with its base, because other hardware or software timed it."""
        return self.base is not None and is_apart(self.attempt, self.base)

    @property
    def lines(self) -> tuple[int, int] | None:
        """Numbers of added and of removed lines; `None` without a base."""
        if self.base is None or self.base.source is None or self.attempt.source is None:
            return None
        return _changed_lines(self.base.source, self.attempt.source)


def changes_of(state: SessionState) -> Iterator[BaseChange]:
    """Yield every attempt, by instance in order of appearance, then by number."""
    attempts = {attempt.attempt: attempt for attempt in state.attempts()}
    for instance in state.instances.values():
        best = instance.best_correct
        for attempt in instance.attempts:
            base = attempts.get(attempt.base or "")
            yield BaseChange(attempt, base, attempt is best, attempt.speed, pending_word(state, attempt))


@lru_cache(COUNTED)
def _changed_lines(before: str, after: str) -> tuple[int, int]:
    return count_changes(source_lines(before), source_lines(after))


def _has_tie(changes: Sequence[BaseChange]) -> bool:
    """Return whether an attempt ties with the best of its instance: it is faster by so little, or later and as fast."""
    best = {split_attempt(change.attempt.attempt).instance: change for change in changes if change.is_best}
    for change in changes:
        name = split_attempt(change.attempt.attempt)
        leader = best.get(name.instance)
        if leader is None or leader is change or change.attempt.decision is not None:
            continue
        if leader.speed is not None and change.speed is not None:
            ratio = change.speed.value / leader.speed.value
            is_later = name.number > leader.attempt.number
            if 1 < ratio <= 1 + TIE or (is_later and 1 - TIE <= ratio <= 1):
                return True
    return False


def _why_best(changes: Sequence[BaseChange]) -> Iterator[str]:
    """Yield by which figure the best of an instance is better than an earlier attempt, where nothing was timed."""
    for best in changes:
        if not best.is_best or best.speed is not None or best.attempt.evaluation is None:
            continue
        same = [
            change.attempt
            for change in changes
            if _traffic(change) == _traffic(best) and change.attempt.decision is None
            if split_attempt(change.attempt.attempt).instance == split_attempt(best.attempt.attempt).instance
            if change.attempt.number < best.attempt.number
        ]
        if same and (evaluation := same[-1].evaluation) is not None:
            why = why_below(evaluation, best.attempt.evaluation)
            yield f"{best.attempt.attempt} is better than {same[-1].attempt}: {why}."


def report_style(verdict: Verdict | None) -> str:
    """Return the style of a verdict; in a report green is for speedups only."""
    return "" if verdict is Verdict.CORRECT else verdict_style(verdict)


def _verdict(change: BaseChange) -> Cell:
    """Return `C correct` with its marks, `C correct !x`, or `- in progress`."""
    verdict = change.attempt.verdict
    text = change.pending if verdict is None else words(verdict)
    findings, decided = bool(findings_of(change.attempt)), decision_mark(change.attempt)
    marks = (FINDING if findings else "") + decided
    style = "bad" if decided == REJECTED else "warn" if findings else report_style(verdict)
    return Cell(f"{letter(verdict)} {text} {marks}".rstrip(), style)


def _traffic(change: BaseChange) -> str:
    if change.attempt.verdict is not Verdict.CORRECT or change.speed is not None:
        return ""
    evaluation = change.attempt.evaluation
    return traffic_words(evaluation) if evaluation is not None else ""


def _cases_in_part(change: BaseChange) -> str:
    """Return `2 of 7` if some cases have no ratio, so that they count as 1.00 in the speedup."""
    speed = change.speed
    return "" if speed is None or speed.cases == speed.all_cases else cases_words(speed)


def _lines(change: BaseChange) -> str:
    """Return the changed lines: `+14 -9`."""
    lines = change.lines
    return "" if lines is None else diff_words(*lines)


def _reason(change: BaseChange) -> Cell:
    """Return the error, else the findings, else the strategy."""
    attempt = change.attempt
    if attempt.judged is not None and attempt.judged.error is not None:
        return Cell(attempt.judged.error)
    return Cell(finding_words(findings_of(attempt)) or strategy_words(attempt), "dim")


CHANGES: tuple[Field[BaseChange], ...] = (
    Field(Column("attempt", most=26, keep=True), lambda change: change.attempt.attempt),
    Field(Column("", 1, 1, if_known=True), lambda change: "*" if change.is_best else "", "key"),
    Field(Column("verdict", 2, 18, keep=True), _verdict),
    Field(
        Column("origin", 15, 18, drop=4),
        lambda change: origin_words(change.attempt, (change.attempt.base or "").rpartition("#")[2]),
        "dim",
    ),
    Field(Number("speedup", 9, 10, if_known=True), lambda change: speed_cell(change.speed)),
    Field(Number("95 %", 12, 14, if_known=True, drop=6), lambda change: interval_cell(change.speed)),
    Field(Number("cases", 6, 8, if_known=True, drop=3), _cases_in_part, "dim"),
    Field(Number("to base", 7, 7, if_known=True, drop=2), lambda change: percent_change(change.gain)),
    Field(Number("traffic", 13, 15, if_known=True, drop=1), _traffic, "dim"),
    Field(Number("lines", 6, 11, if_known=True, drop=5), _lines, "dim"),
    Field(Column("strategy, or error", 20, 90, drop=3), _reason),
)


def attempt_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return every attempt with what it changed and gained."""
    changes = list(changes_of(report.state))
    to_base = any(change.gain is not None for change in changes)
    apart = any(change.is_apart for change in changes)
    in_part = any(map(_cases_in_part, changes))
    return (
        section_of(
            "From attempt to attempt",
            CHANGES,
            changes,
            lambda change: change.attempt.attempt,
            "To base: change in speed on the cases that both timed, without an interval." if to_base else "",
            "No figure to base: other hardware or software timed the base." if apart else "",
            "Cases: those with a ratio, where not all have one; the others count as 1.00." if in_part else "",
            "`*` is the best attempt of its instance." if any(change.is_best for change in changes) else "",
            "Marks: `!` findings, `?` waits for review, `+` accepted, `x` rejected by a person."
            if any(decision_mark(change.attempt) or findings_of(change.attempt) for change in changes)
            else "",
            *_why_best(changes),
            TIE_WORDS if _has_tie(changes) else "",
        ),
    )


def decision_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the decisions of people with their reasons, in the order in which they were made."""
    decided = [
        (attempt, attempt.decision) for attempt in report.state.attempts() if attempt.decision is not None
    ]
    decided.sort(key=lambda item: item[1].wall)

    def decided_words(attempt: AttemptState) -> str:
        """Return `accepted`, `accepted, replaced by softmax#1/3` or `rejected`."""
        if attempt.decision is None or not attempt.decision.accepted:
            return "rejected"
        task = report.state.instances[split_attempt(attempt.attempt).instance].task
        chosen = accepted_attempt(report.state, task)
        return "accepted" if chosen in (None, attempt) else f"accepted, replaced by {chosen.attempt}"

    return (
        section_of(
            "Decisions of people",
            (
                Field(Column("attempt", most=26, keep=True), lambda item: item[0].attempt),
                Field(
                    Column("verdict", 7, 14, drop=2),
                    lambda item: "" if item[0].verdict is None else words(item[0].verdict),
                ),
                Field(Column("decision", 8, 40, keep=True), lambda item: decided_words(item[0])),
                Field(Column("by", 3, 16), lambda item: item[1].by, "dim"),
                Field(Column("when (UTC)", 16, 16, drop=1), lambda item: moment(item[1].wall), "dim"),
                Field(Column("reason", 20, 100, if_known=True), lambda item: " ".join(item[1].why.split())),
            ),
            decided,
            lambda item: item[0].attempt,
        ),
    )
