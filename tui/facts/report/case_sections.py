"""The sections of a report about the cases of its winners."""

from __future__ import annotations

from engine.tuning.best_by_case import best_by_case
from tui.facts.evaluation.best_by_case import FIELDS, MEASURED, TITLE
from tui.facts.evaluation.times import time_fields
from tui.facts.tables import Cell, Column, Row, columns_of, rows_of

from .model import SessionReport
from .section import Section, section_of

ATTEMPT = Column("attempt", most=26, keep=True)


def case_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the cases of the winners, and what `tune` found for each case."""
    bests = [best for winner in report.winners for best in best_by_case(report.state, winner.task)]
    fields = time_fields([row for winner in report.winners for row in winner.cases])
    suspects = [
        f"{winner.attempt}, case {row.case}: suspect: {row.suspect}"
        for winner in report.winners
        for row in winner.cases
        if row.suspect
    ]
    rows = tuple(
        Row(f"{winner.attempt}|{row.key}", (Cell(winner.attempt), *row.cells))
        for winner in report.winners
        for row in rows_of(fields, winner.cases, lambda case: case.key)
    )
    medians = "Medians in microseconds; `<` says that a time is too short to be timed exactly."
    return (
        Section(
            "Cases of the winners", (medians, *suspects) if rows else (), (ATTEMPT, *columns_of(fields)), rows
        ),
        section_of(
            TITLE,
            FIELDS,
            bests,
            lambda best: f"{best.attempt}|{best.row.case}",
            *([MEASURED] if bests else []),
        ),
    )
