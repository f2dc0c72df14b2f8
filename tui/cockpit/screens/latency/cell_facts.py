"""Everything that is known of one cell: on one line below the table, and whole in a dialog."""

from __future__ import annotations

from collections.abc import Callable

from harness import Latency
from harness.wire.limits import memory_words
from harness.wire.results.latency import Timed, Window
from sessions.state.figure_words import us_words
from tui.cockpit.draw.lines import Line, Span, clean
from tui.cockpit.screens.agent.page import tables_lines
from tui.facts.evaluation.times import device_table, is_hidden, range_words, remarks, side_us, times_table
from tui.facts.tables import NOTHING, Cell, Column, Number, Table, named_values, row

from .captions import in_lines
from .timings import BASELINE, Case, Timings, gpu_name

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


def detail_lines(timings: Timings, case: Case, column: str, width: int) -> list[Line]:
    """Return time, range, samples and telemetry of the cell of a case in a column."""
    latency = cell_latency(timings, case, column)
    name = f"{column} {case.letter}"
    if latency is None:
        reason = timings.reasons.get(_device(timings, column))
        return in_lines([Span(f"{name}: {clean(reason.words) if reason else 'not timed'}", "dim")], width)
    baseline = column == BASELINE
    side = latency.baseline if baseline else latency.candidate
    figures = [
        f"{name}: {side_us(latency, baseline=baseline)} us",
        "" if side is None or is_hidden(latency, baseline=baseline) else f"p10-p90 {range_words(side)}",
        "" if side is None else f"{side.samples} samples",
        *_telemetry(latency.window),
    ]
    again = timings.again.get(case.name)
    if again is not None and column == gpu_name(timings.device):
        figures.append(f"timed again: {side_us(again)} us")
    return in_lines([Span(figure) for figure in figures if figure], width)


def cell_latency(timings: Timings, case: Case, column: str) -> Latency | None:
    """Return the times behind a cell; the baseline's column is of the GPU of the speedup."""
    if column == BASELINE:
        return timings.own(case)
    return timings.by_place.get((_device(timings, column), case.name))


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


def dialog_lines(timings: Timings, case: Case, column: str) -> list[Line | str]:
    """Return all figures of a cell with both sides beside each other."""
    latency = cell_latency(timings, case, column)
    if latency is None:
        return [*detail_lines(timings, case, column, DIALOG)]
    again = timings.again.get(case.name)
    is_again = again is not None and latency.device == timings.device
    tables = [
        _sides_table(latency),
        named_values("", _named_facts(latency)).with_sentences(*remarks(latency)),
        *([_sides_table(again, "timed again in new processes")] if again is not None and is_again else []),
    ]
    return [*tables_lines(tables, DIALOG)]


def _sides_table(latency: Latency, title: str = "") -> Table:
    base, this = latency.baseline, latency.candidate
    figures: list[tuple[str, Callable[[Timed], str]]] = [
        ("p10", lambda side: _us(side.p10_ms)),
        ("p90", lambda side: _us(side.p90_ms)),
        ("samples", lambda side: str(side.samples)),
        ("samples left out", lambda side: str(side.left_out)),
        ("processes", lambda side: str(side.processes)),
        ("back to back, warm", lambda side: _us(side.plain_ms)),
        ("sustained", lambda side: _us(side.sustained_ms)),
        ("peak memory", lambda side: memory_words(side.peak_bytes)),
    ]
    rows = [row(Cell("median", "dim"), f"{side_us(latency, baseline=True)} us", f"{side_us(latency)} us")]
    for name, figure in figures:
        texts = ["" if side is None else figure(side) for side in (base, this)]
        if not set(texts) <= NOTHING:
            rows.append(row(Cell(name, "dim"), *texts))
    titles = (latency.against or "baseline", "this attempt")
    return Table(title, (Column("", keep=True), *(Number(name) for name in titles)), tuple(rows))


def _named_facts(latency: Latency) -> list[tuple[str, str]]:
    """Return the facts of the tables of times and devices that are not about one side."""
    return [
        (column.title, cell.text)
        for table in (times_table([latency]), device_table([latency]))
        for shown in table.rows
        for column, cell in zip(table.columns, shown.cells, strict=True)
        if column.title in ONE_FIGURE and cell.text not in NOTHING
    ]


def _us(ms: float | None) -> str:
    return "" if ms is None else f"{us_words(ms)} us"
