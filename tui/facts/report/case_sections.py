"""The sections of a report about the cases of its winners: measured times, and estimates where there are none."""

from __future__ import annotations

from tui.facts.tables import Cell, Column
from tui.facts.vocabulary import UNKNOWN, interval

from .model import CaseTime, EstimatedCase, SessionReport
from .phrases import case_ratio, case_time, roof_words
from .section import Field, Section, columns_of, rows_of

CASES: tuple[Field[CaseTime], ...] = (
    Field(Column("attempt", most=26, keep=True), lambda case: case.attempt),
    Field(Column("case", 7, 24, keep=True), lambda case: case.case),
    Field(Column("sizes", 12, 30, if_known=True, drop=8), lambda case: Cell(case.sizes or UNKNOWN, "dim")),
    Field(Column("device", 6, 6, if_known=True, drop=6), lambda case: Cell(case.device or UNKNOWN, "dim")),
    Field(
        Column("base us", 7, 9, right=True, drop=3),
        lambda case: case_time(case.baseline_us, case.baseline_short_us),
    ),
    Field(
        Column("this us", 7, 9, right=True, drop=2),
        lambda case: case_time(case.candidate_us, case.candidate_short_us),
    ),
    Field(Column("speedup", 9, 10, right=True), lambda case: Cell(case_ratio(case), _style(case))),
    Field(
        Column("95 %", 12, 14, right=True, if_known=True, drop=1),
        lambda case: Cell(UNKNOWN if case.interval is None else interval(*case.interval), _style(case)),
    ),
    Field(Column("outcome", 12, 12, drop=5), lambda case: Cell(_outcome(case), _style(case))),
    Field(Column("roof", 11, 13, right=True, if_known=True, drop=4), lambda case: roof_words(case.roof)),
    Field(Column("cache", 5, 5, if_known=True, drop=7), lambda case: Cell(case.cache or UNKNOWN, "dim")),
    Field(Column("remark", 24, 40, if_known=True, drop=9), lambda case: Cell(case.why or UNKNOWN, "dim")),
)
ESTIMATES: tuple[Field[EstimatedCase], ...] = (
    Field(Column("attempt", most=26, keep=True), lambda case: case.attempt),
    Field(Column("case", 7, 24, keep=True), lambda case: case.case),
    Field(Column("sizes", 12, 30, if_known=True, drop=1), lambda case: Cell(case.sizes or UNKNOWN, "dim")),
    Field(Column("target", 6, 10, keep=True), lambda case: case.target),
    Field(Column("at least us", 7, 11, right=True), lambda case: f"{case.low_us:,.4g}"),
    Field(Column("uncached us", 7, 11, right=True), lambda case: f"{case.high_us:,.4g}"),
    Field(Column("limit", 7, 20), lambda case: case.limit),
)


def case_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the cases of the winners, and the estimates of the winners without a time."""
    return (
        Section(
            "Cases of the winners",
            sentences=("Medians in microseconds; `<` says that a time is too short to be timed exactly.",)
            if report.cases
            else (),
            columns=columns_of(CASES),
            rows=rows_of(CASES, report.cases, lambda case: f"{case.attempt}|{case.device}|{case.case}"),
        ),
        Section(
            "Estimates of winners without a time",
            sentences=(
                "Bounds from counted bytes and operations at the device's peaks. No figure here was measured.",
            )
            if report.estimates
            else (),
            columns=columns_of(ESTIMATES),
            rows=rows_of(ESTIMATES, report.estimates, lambda case: f"{case.attempt}|{case.case}"),
        ),
    )


def _outcome(case: CaseTime) -> str:
    return case.outcome.value if case.outcome is not None else "not timed"


def _style(case: CaseTime) -> str:
    return {"faster": "good", "slower": "bad"}.get(_outcome(case), "dim")
