"""The sections of a report about the cases of its winners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.tuning.best_by_case import best_by_case
from harness import Evaluation
from tui.facts.evaluation.best_by_case import FIELDS, MEASURED, TITLE
from tui.facts.evaluation.counted import case_sizes
from tui.facts.evaluation.times import time_columns, time_rows
from tui.facts.tables import Cell, Column, Row

from .model import SessionReport, Winner
from .section import Section, section_of

ATTEMPT = Column("attempt", most=26, keep=True)


def case_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the cases of the winners, and what `tune` found for each case."""
    bests = [best for winner in report.winners for best in best_by_case(report.state, winner.task)]
    timed = [(winner, timing) for winner in report.winners for timing in winner.evaluation.latency]
    cases = [row for winner in report.winners for row in _of(winner, _time_rows(winner.evaluation))]
    suspects = [
        f"{winner.attempt}, case {timing.case}: suspect: {timing.efficiency.suspect}"
        for winner, timing in timed
        if timing.efficiency is not None and timing.efficiency.suspect
    ]
    medians = "Medians in microseconds; `<` says that a time is too short to be timed exactly."
    return (
        Section(
            "Cases of the winners",
            (medians, *suspects) if cases else (),
            (ATTEMPT, *time_columns([timing for _, timing in timed])),
            tuple(cases),
        ),
        section_of(
            TITLE,
            FIELDS,
            bests,
            lambda best: f"{best.attempt}|{best.case}",
            *([MEASURED] if bests else []),
        ),
    )


def _of(winner: Winner, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows about cases with their attempt in front."""
    for row in rows:
        yield Row(f"{winner.attempt}|{row.key}", (Cell(winner.attempt), *row.cells))


def _time_rows(evaluation: Evaluation) -> Iterator[Row]:
    return time_rows(evaluation.latency, evaluation.not_timed, case_sizes(evaluation))
