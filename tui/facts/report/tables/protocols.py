"""The table of verdicts by two definitions of correct: the benchmark's own, and this judge's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.predictions.original_verdicts import CandidateOf
from sessions.metrics.selection import grouped
from tui.facts.report.section import Section, section_of
from tui.facts.tables import Cell, Column, Field, Number
from tui.facts.vocabulary import counted
from tui.facts.vocabulary import grouped as digits

from .row_set import RowSet, figure, share_words


class Agreement(NamedTuple):
    """Candidates of a model for a suite, by both definitions."""

    suite: str
    model: str
    outcomes: tuple[tuple[bool, bool], ...]
    """(correct by the benchmark, correct by this judge) of each candidate."""

    def number(self, original: bool, here: bool) -> int:  # noqa: FBT001
        """Return the number of candidates with these outcomes."""
        return self.outcomes.count((original, here))


def protocol_section(rows: RowSet) -> Section:
    """Return the matrix of original protocol and this judge, by suite and model."""
    judged = [row for row in rows.rows if CandidateOf(row.task, row.source_sha256) in rows.originals]
    verdicts = {row: rows.originals[CandidateOf(row.task, row.source_sha256)] for row in judged}
    both = [row for row in judged if row.counted and verdicts[row] != "unsupported"]
    agreements = [
        Agreement(suite, model, tuple((verdicts[row] == "passes", row.correct) for row in own))
        for (suite, model), own in sorted(grouped(both, lambda row: (row.suite, row.model)).items())
    ]
    fields: tuple[Field[Agreement], ...] = (
        Field(Column("suite", keep=True), lambda row: row.suite),
        Field(Column("model", keep=True), lambda row: row.model),
        Field(Number("n"), lambda row: figure(len(row.outcomes), digits)),
        _outcome("correct by both", lambda row: row.number(original=True, here=True)),
        _outcome("by the original alone", lambda row: row.number(original=True, here=False)),
        _outcome("here alone", lambda row: row.number(original=False, here=True)),
        _outcome("by neither", lambda row: row.number(original=False, here=False)),
    )
    section = section_of(
        "Original protocol and this judge", fields, agreements, lambda row: f"{row.suite}|{row.model}"
    )
    apart = len(rows.rows) - len(both)
    reason = (
        f"Left out: {counted(apart, 'attempt')} without a verdict by both." if apart else "Left out: nothing."
    )
    meaning = "n: candidates with a verdict by the benchmark's own definition of correct and by this judge."
    return section.named("protocols", (meaning, reason))


def _outcome(title: str, number: Callable[[Agreement], int]) -> Field[Agreement]:
    def cell(row: Agreement) -> Cell:
        value = number(row)
        return Cell(f"{digits(value)} ({share_words(value / len(row.outcomes))})", value=value)

    return Field(Number(title), cell)
