"""Everything that is known of one cell: on one line below the table, and whole in a dialog."""

from __future__ import annotations

from collections.abc import Callable

from harness.wire.limits import memory_words
from harness.wire.results.latency import Timed, Window
from sessions.state.cases import NOT_TIMED, CaseRow
from sessions.state.figure_words import us_words
from tui.cockpit.draw.grid import tables_lines
from tui.cockpit.draw.lines import Line, Span, clean
from tui.facts.evaluation.times import DEVICE, range_words, remarks, time_fields
from tui.facts.tables import NOTHING, Cell, Column, Number, Table, named_values, row

from .captions import in_lines
from .timings import BASELINE, Timings, gpu_name

DIALOG = 70
"""Width of the figures of a cell."""
ONE_FIGURE = frozenset(
    {
        *("speedup", "outcome", "share of roof", "share of peak", "pairs", "method", "confirmed by"),
        *("IOU", "of a copy", "MFU", "of a product", "floor us", "lowest MHz", "throttled", "others"),
        *("hot/memory C", "W"),
    }
)
"""Columns of the tables of times and devices that have one figure for both sides."""


def detail_lines(timings: Timings, case: CaseRow, column: str, width: int) -> list[Line]:
    """Return time, range, samples and telemetry of the cell of a case in a column."""
    row = cell_row(timings, case, column)
    name = f"{column} {timings.letter(case)}"
    if row is None or row.latency is None:
        reason = timings.reasons.get(_device(timings, column))
        return in_lines([Span(f"{name}: {clean(reason.words) if reason else NOT_TIMED}", "dim")], width)
    side = row.baseline if column == BASELINE else row.candidate
    figures = [
        f"{name}: {side} us",
        "" if side.timed is None or side.is_hidden else f"p10-p90 {range_words(side.timed)}",
        "" if side.timed is None else f"{side.timed.samples} samples",
        *_telemetry(row.window),
    ]
    again = timings.again.get(case.case)
    if again is not None and column == gpu_name(timings.device):
        figures.append(f"timed again: {again.candidate} us")
    return in_lines([Span(figure) for figure in figures if figure], width)


def cell_row(timings: Timings, case: CaseRow, column: str) -> CaseRow | None:
    """Return the row behind a cell; the baseline's column is of the GPU of the speedup."""
    if column == BASELINE:
        return case
    return timings.by_place.get((_device(timings, column), case.case))


def _device(timings: Timings, column: str) -> str:
    return next((device for device in timings.devices if gpu_name(device) == column), "")


def _telemetry(window: Window | None) -> list[str]:
    if window is None:
        return []
    return [
        "" if window.clock_mhz is None else f"{window.clock_mhz / 1000:.2f} GHz",
        "" if window.power_w is None else f"{window.power_w:.0f} W",
        "" if window.hotspot_c is None else f"{window.hotspot_c:.0f} C",
    ]


def dialog_lines(timings: Timings, case: CaseRow, column: str) -> list[Line | str]:
    """Return all figures of a cell with both sides beside each other."""
    row = cell_row(timings, case, column)
    if row is None or row.latency is None:
        return [*detail_lines(timings, case, column, DIALOG)]
    again = timings.again.get(case.case) if row.device == timings.device else None
    tables = [
        _sides_table(row),
        named_values("", _named_facts(row)).with_sentences(*remarks(row.latency)),
        *([_sides_table(again, "timed again in new processes")] if again is not None else []),
    ]
    return [*tables_lines(tables, DIALOG)]


def _sides_table(shown: CaseRow, title: str = "") -> Table:
    figures: list[tuple[str, Callable[[Timed], str]]] = [
        ("p10", lambda side: _us(side.p10_ms)),
        ("p90", lambda side: _us(side.p90_ms)),
        ("samples", lambda side: str(side.samples)),
        ("samples left out", lambda side: str(side.left_out)),
        ("processes", lambda side: str(side.processes)),
        ("back to back, hot", lambda side: _us(side.plain_ms)),
        ("sustained", lambda side: _us(side.sustained_ms)),
        ("peak memory", lambda side: memory_words(side.peak_bytes)),
    ]
    rows = [row(Cell("median", "dim"), f"{shown.baseline} us", f"{shown.candidate} us")]
    for name, figure in figures:
        texts = [
            "" if side is None else figure(side) for side in (shown.baseline.timed, shown.candidate.timed)
        ]
        if not set(texts) <= NOTHING:
            rows.append(row(Cell(name, "dim"), *texts))
    titles = (shown.against or "baseline", "this attempt")
    return Table(title, (Column("", keep=True), *(Number(name) for name in titles)), tuple(rows))


def _named_facts(shown: CaseRow) -> list[tuple[str, str]]:
    """Return the facts of the tables of times and devices that are not about one side."""
    cells = [(field.column.title, field.cell(shown).text) for field in time_fields([shown])]
    if shown.latency is not None:
        cells += [(field.column.title, field.cell(shown.latency).text) for field in DEVICE]
    return [(title, text) for title, text in cells if title in ONE_FIGURE and text not in NOTHING]


def _us(ms: float | None) -> str:
    return "" if ms is None else f"{us_words(ms)} us"
