"""The table of an attempt's times: a row a case, a column a GPU."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from harness import Latency, Outcome
from harness.wire.results.latency import Bound
from harness.wire.results.roofs import is_launch_bound, roof_share
from sessions.state.figure_words import interval_words, ratio_words
from tui.cockpit.draw.lines import clean, shorten
from tui.facts import vocabulary
from tui.facts.evaluation.times import side_us
from tui.facts.tables import Cell, Column, Number, Row, Table
from tui.facts.vocabulary import UNKNOWN

from .timings import BASELINE, Case, Missing, Timings, gpu_name, is_throttled

GAP = 1
"""Cells between columns: eight GPUs have to fit into 80 cells."""
THROTTLED = "!"
CASE_CELLS = 16
LEFT_OUT, BOTH_SHORT = "left out", "both short"
NOTHING = Cell(UNKNOWN, "dim")


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
        Number("spread", drop=4, if_known=True),
        Number("speedup"),
        Column("95 %", drop=3, if_known=True),
        Number("roof", drop=2, if_known=True),
        Column("limit", drop=5, if_known=True),
    )
    rows = tuple(_row(timings, case, shown) for case in timings.cases)
    return Table("", tuple(replace(column, gap=GAP) for column in columns), rows)


def _row(timings: Timings, case: Case, shown: Shown) -> Row:
    own = timings.own(case)
    spread = timings.spread(case)
    share = roof_share(own) if own is not None else None
    suspect = own is not None and own.efficiency is not None and bool(own.efficiency.suspect)
    roof = NOTHING if share is None else Cell(vocabulary.percent(share.share))
    base = side_us(own, baseline=True) if own is not None else UNKNOWN
    return Row(
        case.name,
        (
            Cell(f"{case.letter} {shorten(clean(case.name), CASE_CELLS)}"),
            Cell(case.shape or UNKNOWN, "dim"),
            *((Cell(base, key=BASELINE),) if shown is Shown.TIME else ()),
            *(gpu_cell(timings, case, device, shown) for device in timings.devices),
            NOTHING if spread is None else Cell(f"{100 * spread:.1f}%", "dim"),
            *speedup_cells(own),
            Cell("suspect", "bad") if suspect else roof,
            Cell(limit_word(own), "dim"),
        ),
    )


def gpu_cell(timings: Timings, case: Case, device: str, shown: Shown) -> Cell:
    """Return the cell of a case on a GPU; a mark if the value is not known."""
    latency = timings.by_place.get((device, case.name))
    if latency is None:
        reason = timings.reasons.get(device)
        mark = reason.mark if reason is not None else Missing.UNKNOWN
        style = "dim" if mark == UNKNOWN else "busy" if mark == Missing.ASKED else "bad"
        return Cell(mark, style, gpu_name(device))
    throttled = is_throttled(latency)
    text = _value(latency, shown) + (THROTTLED if throttled else "")
    return Cell(text, "dim" if throttled else "", gpu_name(device))


def _value(latency: Latency, shown: Shown) -> str:
    match shown:
        case Shown.TIME:
            return side_us(latency)
        case Shown.SPEEDUP:
            return _ratio(latency)
        case Shown.CLOCK:
            mhz = latency.window.clock_mhz if latency.window is not None else None
            return UNKNOWN if mhz is None else f"{mhz / 1000:.2f}"


def _ratio(latency: Latency) -> str:
    return ratio_words(latency.speedup, latency.bound.sign).removesuffix("x")


def speedup_cells(latency: Latency | None) -> tuple[Cell, Cell]:
    """Return the speedup of a case and its interval; green only if the interval is above 1."""
    if latency is None:
        return NOTHING, NOTHING
    if latency.speedup is None:
        return Cell(LEFT_OUT, "dim"), Cell(BOTH_SHORT, "dim")
    style = {Outcome.FASTER: "good", Outcome.SLOWER: ""}.get(latency.outcome, "dim")
    interval = (
        NOTHING
        if latency.ci is None or latency.bound is not Bound.NONE
        else Cell(interval_words(*latency.ci), style)
    )
    return Cell(_ratio(latency), style), interval


def limit_word(latency: Latency | None) -> str:
    """Return what limits the candidate in a case: `memory`, `compute`, `compute peak` or `launch`; `-` if unknown."""
    if latency is None:
        return UNKNOWN
    if is_launch_bound(latency):
        return "launch"
    share = roof_share(latency)
    return UNKNOWN if share is None else share.limit_words
