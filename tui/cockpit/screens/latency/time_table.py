"""The table of an attempt's times: a row a case, a column a GPU."""

from __future__ import annotations

from enum import StrEnum

from rich.cells import cell_len

from harness import Latency, Outcome
from harness.wire.latency import Bound
from tui.cockpit.draw.lines import clean, shorten
from tui.facts import vocabulary
from tui.facts.evaluation.roofs import is_launch_bound, roof_share
from tui.facts.evaluation.times import side_us
from tui.facts.tables import Cell, Column, Row
from tui.facts.vocabulary import UNKNOWN

from .timings import (
    BASELINE,
    Case,
    Missing,
    Timings,
    gpu_name,
    is_throttled,
)

GAP = 1
"""Cells between columns: eight GPUs have to fit into 80 cells."""
THROTTLED = "!"
CASE_CELLS = 16
LEFT_OUT, BOTH_SHORT = "left out", "both short"
NOTHING = Cell(UNKNOWN, "dim")
RIGHT_OF_GPUS = len("speedup") + len("roof") + 2 * GAP
"""Least cells that stay free right of the GPUs."""


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


def time_table(
    timings: Timings, shown: Shown, width: int, cursor: str
) -> tuple[tuple[Column, ...], list[Row]]:
    """
    Return columns and rows; of more GPUs than fit into `width` cells, those around the cursor's column.

    The baseline's time and the speedup are from the GPU of the verdict.
    """
    devices = _window(timings, shown, width, cursor)
    columns = (
        Column("  case", most=CASE_CELLS + 2, least=6),
        Column("shape", right=True, drop=6, if_known=True),
        *((Column(BASELINE, right=True),) if shown is Shown.TIME else ()),
        *(Column(gpu_name(device), right=True) for device in devices),
        Column("spread", right=True, drop=4, if_known=True),
        Column("speedup", right=True),
        Column("95 %", drop=3, if_known=True),
        Column("roof", right=True, drop=2, if_known=True),
        Column("limit", drop=5, if_known=True),
    )
    return columns, [_row(timings, case, shown, devices) for case in timings.cases]


def cursor_columns(timings: Timings, shown: Shown) -> tuple[str, ...]:
    """Return the titles of the columns that the cursor can be in, of all GPUs."""
    base = (BASELINE,) if shown is Shown.TIME else ()
    return (*base, *map(gpu_name, timings.devices))


def _row(timings: Timings, case: Case, shown: Shown, devices: tuple[str, ...]) -> Row:
    own = timings.own(case)
    spread = timings.spread(case)
    speedup, interval = speedup_cells(own)
    share = roof_share(own) if own is not None else None
    suspect = own is not None and own.efficiency is not None and bool(own.efficiency.suspect)
    base = (Cell(side_us(own, baseline=True)) if own is not None else NOTHING,)
    return Row(
        case.name,
        (
            Cell(f"{case.letter} {shorten(clean(case.name), CASE_CELLS)}"),
            Cell(case.shape or UNKNOWN, "dim"),
            *(base if shown is Shown.TIME else ()),
            *(gpu_cell(timings, case, device, shown) for device in devices),
            NOTHING if spread is None else Cell(f"{100 * spread:.1f}%", "dim"),
            speedup,
            interval,
            Cell("suspect", "bad")
            if suspect
            else NOTHING
            if share is None
            else Cell(vocabulary.percent(share.share)),
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
        return Cell(mark, style)
    throttled = is_throttled(latency)
    return Cell(_value(latency, shown) + (THROTTLED if throttled else ""), "dim" if throttled else "")


def _value(latency: Latency, shown: Shown) -> str:
    match shown:
        case Shown.TIME:
            return side_us(latency)
        case Shown.SPEEDUP:
            return UNKNOWN if latency.speedup is None else _ratio(latency)
        case Shown.CLOCK:
            mhz = latency.window.clock_mhz if latency.window is not None else None
            return UNKNOWN if mhz is None else f"{mhz / 1000:.2f}"


def _ratio(latency: Latency) -> str:
    return vocabulary.speedup(latency.speedup or 0.0, latency.bound).removesuffix("x")


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
        else Cell(vocabulary.interval(*latency.ci), style)
    )
    return Cell(_ratio(latency), style), interval


def limit_word(latency: Latency | None) -> str:
    """Return what limits the candidate in a case: `memory`, `compute` or `launch`; `-` if unknown."""
    if latency is None:
        return UNKNOWN
    if is_launch_bound(latency):
        return "launch"
    share = roof_share(latency)
    return UNKNOWN if share is None else share.limit


def _window(timings: Timings, shown: Shown, width: int, cursor: str) -> tuple[str, ...]:
    """Return the page of GPUs with the cursor; all if they fit."""
    widths = [
        max(
            cell_len(gpu_name(device)),
            *(cell_len(gpu_cell(timings, case, device, shown).text) for case in timings.cases),
        )
        + GAP
        for device in timings.devices
    ]
    names = max((len(case.name) for case in timings.cases), default=0)
    room = width - min(names, CASE_CELLS) - 2 - RIGHT_OF_GPUS
    if shown is Shown.TIME:
        base = [timings.own(case) for case in timings.cases]
        room -= GAP + max(
            len(BASELINE), *(len(side_us(own, baseline=True)) for own in base if own is not None), 0
        )
    count = max(1, room // max(widths, default=1))
    if sum(widths) <= room or count >= len(timings.devices):
        return timings.devices
    titles = [gpu_name(device) for device in timings.devices]
    place = titles.index(cursor) if cursor in titles else 0
    start = min(place // count * count, len(titles) - count)
    return timings.devices[start : start + count]
