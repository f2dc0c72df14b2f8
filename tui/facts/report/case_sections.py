"""The sections of a report about the cases of its winners: measured times, and estimates where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.tuning.best_by_case import best_by_case
from harness import Evaluation
from tui.facts.evaluation.best_by_case import FIELDS, TITLE, basis_words
from tui.facts.evaluation.counted import ESTIMATES, case_sizes
from tui.facts.evaluation.times import time_columns, time_rows
from tui.facts.tables import Cell, Column, Row, columns_of, rows_of

from .model import SessionReport, Winner
from .section import Section, section_of

ATTEMPT = Column("attempt", most=26, keep=True)


def case_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the cases of the winners, the estimates of the winners without a time, and what `tune` found for each case."""
    bests = [best for winner in report.winners for best in best_by_case(report.state, winner.task)]
    timed = [(winner, timing) for winner in report.winners for timing in winner.evaluation.latency]
    cases = [row for winner in report.winners for row in _of(winner, _time_rows(winner.evaluation))]
    estimates = [
        row
        for winner in report.winners
        if winner.speed is None
        for row in _of(winner, _estimate_rows(winner.evaluation))
    ]
    suspects = [
        f"{winner.attempt}, case {timing.case}: suspect: {timing.efficiency.suspect}"
        for winner, timing in timed
        if timing.efficiency is not None and timing.efficiency.suspect
    ]
    medians = "Medians in microseconds; `<` says that a time is too short to be timed exactly."
    bounds = "Bounds from counted bytes and operations at the device's peaks. No figure here was measured."
    return (
        Section(
            "Cases of the winners",
            (medians, *suspects) if cases else (),
            (ATTEMPT, *time_columns([timing for _, timing in timed])),
            tuple(cases),
        ),
        Section(
            "Estimates of winners without a time",
            (bounds,) if estimates else (),
            (ATTEMPT, *columns_of(ESTIMATES)),
            tuple(estimates),
        ),
        section_of(
            TITLE,
            FIELDS,
            bests,
            lambda best: f"{best.attempt}|{best.case}",
            *([basis_words(bests)] if bests else []),
        ),
    )


def _of(winner: Winner, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows about cases with their attempt in front."""
    for row in rows:
        yield Row(f"{winner.attempt}|{row.key}", (Cell(winner.attempt), *row.cells))


def _time_rows(evaluation: Evaluation) -> Iterator[Row]:
    return time_rows(evaluation.latency, evaluation.not_timed, case_sizes(evaluation))


def _estimate_rows(evaluation: Evaluation) -> tuple[Row, ...]:
    """Return the bounds of each case for the first target."""
    first = [bounds for bounds in evaluation.estimate if bounds.target == evaluation.estimate[0].target]
    return rows_of(ESTIMATES, first, lambda bounds: bounds.case)
