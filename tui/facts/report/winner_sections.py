"""The sections of a report about its winners, and the winners of several sessions in one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessions.names import short_task
from sessions.state.speed import MIXED
from sessions.state.state import Confirmation
from tui.facts.styles import speed_style
from tui.facts.tables import Cell, Column, Row
from tui.facts.vocabulary import UNKNOWN

from .model import SessionReport, Unsolved, Winner
from .phrases import (
    cases_words,
    decision_words,
    exact_words,
    figure_words,
    interval_words,
    marks,
    origin_words,
    roof_range_words,
    short_commit,
)
from .section import Field, Section, as_cell, columns_of, rows_of

CAUTION = "Compare only rows with the same baseline and the same device."
EXAM_STYLES = {
    Confirmation.CONFIRMED: "",
    Confirmation.NOT_CONFIRMED: "bad",
    Confirmation.NOT_EXAMINED: "dim",
}
WINNERS: tuple[Field[Winner], ...] = (
    Field(Column("attempt", most=26, keep=True), lambda winner: winner.attempt),
    Field(
        Column("speedup", 9, 10, right=True, if_known=True),
        lambda winner: Cell(figure_words(winner.speed), speed_style(winner.speed)),
    ),
    Field(
        Column("95 %", 12, 14, right=True, if_known=True, drop=1),
        lambda winner: Cell(interval_words(winner.speed), speed_style(winner.speed)),
    ),
    Field(
        Column("", 3, 3, if_known=True),
        lambda winner: Cell(marks(winner), "warn" if winner.waiting or winner.findings else ""),
    ),
    Field(
        Column("cases", 6, 8, right=True, if_known=True, drop=4),
        lambda winner: Cell(cases_words(winner.speed), "dim"),
    ),
    Field(
        Column("exact cases", right=True, if_known=True, drop=10), lambda winner: exact_words(winner.speed)
    ),
    Field(Column("remark", 12, 40, if_known=True, drop=2), lambda winner: winner.no_speed or UNKNOWN),
    Field(
        Column("roof", 7, 8, right=True, if_known=True, drop=3), lambda winner: roof_range_words(winner.roof)
    ),
    Field(Column("exam", 12, 12), lambda winner: Cell(str(winner.confirmed), EXAM_STYLES[winner.confirmed])),
    Field(Column("decision", 8, 30, if_known=True, drop=5), decision_words),
    Field(
        Column("before exam", right=True, if_known=True, drop=6),
        lambda winner: figure_words(winner.before_exam),
    ),
    Field(
        Column("against", 7, 12, if_known=True, drop=7), lambda winner: Cell(winner.against or UNKNOWN, "dim")
    ),
    Field(
        Column("device", 6, 16, if_known=True, drop=8), lambda winner: Cell(winner.device or UNKNOWN, "dim")
    ),
    Field(Column("by GPU", 12, 30, if_known=True, drop=9), lambda winner: winner.by_gpu or UNKNOWN),
)
WINNER_COLUMNS = columns_of(WINNERS)
WHY: tuple[Field[Winner], ...] = (
    Field(Column("attempt", keep=True), lambda winner: winner.attempt),
    Field(Column("origin", if_known=True), lambda winner: origin_words(winner.origin, winner.base)),
    Field(Column("why", least=30, if_known=True), lambda winner: winner.strategy or UNKNOWN),
    Field(
        Column("findings", least=20, if_known=True), lambda winner: Cell(winner.findings or UNKNOWN, "warn")
    ),
)
WHERE: tuple[Field[Winner], ...] = (
    Field(Column("attempt", keep=True), lambda winner: winner.attempt),
    Field(Column("commit", keep=True), lambda winner: short_commit(winner.commit)),
    Field(Column("branch", keep=True), lambda winner: winner.branch),
    Field(Column("accepted file", keep=True, if_known=True), lambda winner: winner.accepted_file or UNKNOWN),
)


def winner_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the winners with the tasks without one, the bars of their speedups, why they are fast, and where they are."""
    solved = {winner.attempt for winner in report.winners}
    return (
        Section(
            "Winners",
            sentences=tuple(_notes(report)),
            columns=WINNER_COLUMNS,
            rows=(
                *rows_of(WINNERS, report.winners, _key),
                *(_unsolved_row(task) for task in report.unsolved if report.summary.tally.judged),
            ),
        ),
        Section(
            "Speedup by task",
            sentences=(
                "The scale is linear from 0. The baseline has a mark at 1x, an interval two ends; > is a lower bound, // a cut bar.",
            )
            if any(winner.speed is not None for winner in report.winners)
            else (),
            bars=tuple(winner for winner in report.winners if winner.speed is not None),
        ),
        Section(
            "Why: the strategy in the model's words, or the closest attempt's error",
            columns=columns_of(WHY),
            rows=(
                *rows_of(WHY, report.winners, _key),
                *(
                    Row(
                        _unsolved_key(task),
                        (Cell(_unsolved_name(task)), Cell(UNKNOWN), Cell(_why_not(task)), Cell(UNKNOWN)),
                    )
                    for task in report.unsolved
                    if report.summary.tally.judged
                ),
            ),
        ),
        Section(
            "Where the kernels lie",
            sentences=(
                "Read a kernel with `git show COMMIT:kernel.py` in the store, an accepted one on the branch `accepted`.",
            )
            if solved
            else (),
            columns=columns_of(WHERE),
            rows=rows_of(WHERE, report.winners, _key),
        ),
    )


def _key(winner: Winner) -> str:
    return winner.attempt


def _notes(report: SessionReport) -> Iterator[str]:
    """Yield what a reader must know about the winners."""
    if not report.winners:
        attempts = "No task is solved." if report.summary.tally.judged else "No attempt was judged yet."
        yield f"There is no winner. {attempts}"
        return
    signs = {winner.speed.sign for winner in report.winners if winner.speed is not None}
    if signs:
        yield "Speedup: geometric mean over all cases, with its 95 % interval. A case without a ratio counts as 1.00."
    if ">=" in signs:
        yield "`>=` is a lower bound: some cases are too short for an exact time."
    if MIXED in signs:
        yield "`~` is a mean over lower and upper bounds: the true speedup may be above or below."
    if any(winner.roof is not None for winner in report.winners):
        yield "Roof: share of the copy or matrix product that this session measured on the device."
    if any(map(marks, report.winners)):
        yield "Marks: `!` findings, `?` waits for review, `+` accepted, `=` confirmed by the exam."
    if report.summary.timing == "no GPU":
        yield "Estimate only: without a GPU no time was measured."
    failed = [winner.attempt for winner in report.winners if winner.confirmed is Confirmation.NOT_CONFIRMED]
    if failed:
        yield f"Do not use {', '.join(failed)}: wrong on the cases of the exam."


def _unsolved_name(task: Unsolved) -> str:
    """Return the attempt that came furthest, else the task."""
    return task.closest or short_task(task.task)


def _unsolved_key(task: Unsolved) -> str:
    return task.closest or f"task:{task.task}"


def _unsolved_row(task: Unsolved) -> Row:
    texts = {"attempt": _unsolved_name(task), "exam": "not solved", "": ""}
    cells = tuple(Cell(texts.get(column.title, UNKNOWN), "dim") for column in WINNER_COLUMNS)
    return Row(_unsolved_key(task), cells)


def _why_not(task: Unsolved) -> str:
    return f"{task.why}; ended: {task.ended}" if task.ended else task.why


def ranked_winners(reports: Sequence[SessionReport]) -> list[tuple[SessionReport, Winner]]:
    """Return the winners with their sessions: by task in order of appearance, the fastest first."""
    tasks = dict.fromkeys(winner.task for report in reports for winner in report.winners)
    return [
        entry
        for task in tasks
        for entry in sorted(
            ((report, winner) for report in reports for winner in report.winners if winner.task == task),
            key=lambda entry: -entry[1].speed.value if entry[1].speed is not None else 0.0,
        )
    ]


def are_comparable(winners: Sequence[Winner]) -> bool:
    """True if all timed winners have the same baseline and the same product."""
    timed = [winner for winner in winners if winner.speed is not None]
    return len({(winner.against, winner.device.partition(" ")[2]) for winner in timed}) <= 1


def merged_section(reports: Sequence[SessionReport]) -> Section:
    """Return the winners of several sessions in one table. The key of a row begins with its session."""
    ranked = ranked_winners(reports)
    return Section(
        "Winners of all sessions",
        sentences=() if are_comparable([winner for _, winner in ranked]) else (CAUTION,),
        columns=(*WINNER_COLUMNS, Column("session", 25, 34, keep=True)),
        rows=tuple(
            Row(
                f"{report.summary.session}|{winner.attempt}",
                (*(as_cell(field.cell(winner)) for field in WINNERS), Cell(report.summary.session, "key")),
            )
            for report, winner in ranked
        ),
    )
