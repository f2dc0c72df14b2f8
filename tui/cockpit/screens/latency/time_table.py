"""The table of an attempt's times: a row a case, a column a GPU."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from sessions.state.cases import CaseRow
from sessions.state.figure_words import interval_words
from tui.cockpit.draw.lines import clean, shorten
from tui.facts import vocabulary
from tui.facts.evaluation.times import case_style
from tui.facts.tables import Cell, Column, Number, Row, Table, row
from tui.facts.vocabulary import UNKNOWN

from .timings import BASELINE, Missing, Timings, gpu_name, is_throttled

GAP = 1
"""Cells between columns: eight GPUs have to fit into 80 cells."""
THROTTLED = "!"
CASE_CELLS = 16


class Shown(StrEnum):
    """The value that the columns of GPUs show."""

    TIME = "medians, us"
    SPEEDUP = "speedup on each GPU"
    CLOCK = "lowest clock, GHz"

    @property
    def next(self) -> Shown:
        """The value after this one, in turns."""
        values = list(Shown)
        return values[(values.index(self) + 1) % len(values)]


def time_table(timings: Timings, shown: Shown) -> Table:
    """Return a row a case, a column a GPU; the baseline's time and the speedup are from the GPU of the verdict."""
    columns = (
        Column("  case", most=CASE_CELLS + 2, least=6),
        Number("shape", drop=6, if_known=True),
        *((Number(BASELINE),) if shown is Shown.TIME else ()),
        *(Number(gpu_name(device), paged=True) for device in timings.devices),
        Number("range", drop=4, if_known=True),
        Number("speedup"),
        Column("95 %", drop=3, if_known=True),
        Number("roof", drop=2, if_known=True),
        Column("limit", drop=5, if_known=True),
    )
    rows = tuple(_row(timings, case, shown) for case in timings.cases)
    return Table("", tuple(replace(column, gap=GAP) for column in columns), rows)


def _row(timings: Timings, own: CaseRow, shown: Shown) -> Row:
    gpu_range = timings.gpu_range(own)
    roof = "" if own.roof is None else vocabulary.percent(own.roof.share)
    interval = "" if own.interval is None else interval_words(*own.interval)
    cells = (
        Cell(f"{timings.letter(own)} {shorten(clean(own.case), CASE_CELLS)}"),
        Cell(own.shape, "dim"),
        *((Cell(str(own.baseline), key=BASELINE),) if shown is Shown.TIME else ()),
        *(gpu_cell(timings, own.case, device, shown) for device in timings.devices),
        Cell("" if gpu_range is None else f"{100 * gpu_range:.1f}%", "dim"),
        Cell(own.reason or own.figure.removesuffix("x"), "dim" if own.reason else case_style(own)),
        Cell(interval, case_style(own)),
        Cell("suspect", "bad") if own.suspect else Cell(roof),
        Cell(own.limit, "dim"),
    )
    return replace(row(*cells), key=own.case)


def gpu_cell(timings: Timings, case: str, device: str, shown: Shown) -> Cell:
    """Return the cell of a case on a GPU; a mark if the value is not known."""
    timed = timings.by_place.get((device, case))
    if timed is None:
        reason = timings.reasons.get(device)
        mark = reason.mark if reason is not None else Missing.UNKNOWN
        style = "dim" if mark == UNKNOWN else "busy" if mark == Missing.ASKED else "bad"
        return Cell(mark, style, gpu_name(device))
    throttled = is_throttled(timed)
    text = _value(timed, shown) + (THROTTLED if throttled else "")
    return Cell(text, "dim" if throttled else "", gpu_name(device))


def _value(timed: CaseRow, shown: Shown) -> str:
    match shown:
        case Shown.TIME:
            return str(timed.candidate)
        case Shown.SPEEDUP:
            return timed.figure.removesuffix("x")
        case Shown.CLOCK:
            mhz = timed.window.clock_mhz if timed.window is not None else None
            return UNKNOWN if mhz is None else f"{mhz / 1000:.2f}"
