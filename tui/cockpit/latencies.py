"""Tables of what timing measured: by case and GPU, and what the GPU told of itself meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness import Evaluation, Latency, Outcome
from harness.wire.latency import Timed, Window
from sessions.state.speed import speed_of
from tui import measured, vocabulary
from tui.cockpit.lines import clean
from tui.report.roofs import shortest_us
from tui.tables import Cell, Column, Row

TIME_COLUMNS = (
    Column("GPU", 3, 10),
    Column("case", 8, 24),
    Column("baseline", 8, 12, right=True, drop=2),
    Column("candidate", 9, 9, right=True, drop=1),
    Column("speedup", 7, 10, right=True),
    Column("95 % interval", 13, 14, right=True),
    Column("", 12, 12),
    Column("p10-p90", 9, 18, right=True, drop=5, if_known=True),
    Column("samples", 7, 9, right=True, drop=6, if_known=True),
    Column("left out", 8, 8, right=True, drop=4, if_known=True),
    Column("pairs", 5, 5, right=True, drop=8, if_known=True),
    Column("cache", 5, 5, drop=9),
    Column("method", 6, 6, drop=10),
    Column("confirmed", 9, 9, drop=3),
)
DEVICE_COLUMNS = (
    Column("GPU", 3, 10),
    Column("case", 8, 24),
    Column("IOU", 5, 6, right=True, if_known=True),
    Column("MFU", 5, 6, right=True, if_known=True),
    Column("of copy", 7, 7, right=True, if_known=True),
    Column("of product", 10, 10, right=True, if_known=True),
    Column("floor", 7, 8, right=True, drop=5, if_known=True),
    Column("launches", 8, 8, right=True, drop=6, if_known=True),
    Column("lowest clock", 16, 18, right=True, drop=1, if_known=True),
    Column("throttled", 13, 30, drop=2, if_known=True),
    Column("others", 6, 6, right=True, drop=3, if_known=True),
    Column("hot/memory", 10, 11, right=True, drop=8, if_known=True),
    Column("power", 6, 6, right=True, drop=9, if_known=True),
    Column("a call", 7, 18, right=True, drop=10, if_known=True),
    Column("peak memory", 11, 11, right=True, drop=11, if_known=True),
)
NOTHING = Cell(vocabulary.UNKNOWN, "dim")


def time_columns(latency: Sequence[Latency]) -> tuple[Column, ...]:
    """The columns of the times; the baseline's has its name, where all are against the same."""
    names = {each.against for each in latency}
    name = names.pop() if len(names) == 1 else ""
    found = list(TIME_COLUMNS)
    if name:
        found[2] = Column(clean(name), 8, 12, right=True, drop=2)
    return tuple(found)


def time_rows(latency: Iterable[Latency]) -> list[Row]:
    """One row a device and case: both sides, and what their ratio is worth."""
    rows = []
    for each in latency:
        style = {Outcome.FASTER: "good", Outcome.SLOWER: "bad"}.get(each.outcome, "dim")
        side = each.candidate
        cells = (
            Cell(clean(each.device), "key"),
            Cell(clean(each.case)),
            _side(each, baseline=True),
            _side(each, baseline=False),
            NOTHING if each.speedup is None else Cell(vocabulary.speedup(each.speedup, each.bound), style),
            NOTHING if each.ci is None or each.bound.sign else Cell(vocabulary.interval(*each.ci)),
            Cell(each.outcome.value, style),
            NOTHING if side is None else Cell(_range(side), "dim"),
            NOTHING if side is None else Cell(_samples(each), "dim"),
            _left_out(each),
            Cell(str(each.pairs), "dim") if each.pairs else NOTHING,
            Cell(each.cache, "dim"),
            Cell(each.method.value, "dim"),
            Cell(each.confirmed, "warn" if each.confirmed == "bound" else "dim"),
        )
        rows.append(Row(f"{each.device}/{each.case}", cells))
    return rows


def device_rows(latency: Iterable[Latency]) -> list[Row]:
    """One row a device and case: what it achieved of the device, and how the device fared."""
    rows = []
    for each in latency:
        used = each.efficiency
        suspect = "bad" if used is not None and used.suspect else ""
        window = each.window or Window(source="", seconds=0.0)
        side = each.candidate
        cells = (
            Cell(clean(each.device), "key"),
            Cell(clean(each.case)),
            _share(None if used is None else used.io_utilisation, suspect),
            _share(None if used is None else used.mfu, suspect),
            _share(None if used is None else used.io_measured, ""),
            _share(None if used is None else used.mfu_measured, ""),
            _time(each.floor_ms),
            _time(None if side is None else side.plain_ms),
            NOTHING if window.clock_mhz is None else Cell(f"{measured.clock_words(window)} MHz"),
            Cell(measured.throttle_words(window), "warn") if window.throttled else NOTHING,
            NOTHING
            if window.other_processes is None
            else Cell(str(window.other_processes), "bad" if window.other_processes else "dim"),
            _heat(window),
            NOTHING if window.power_w is None else Cell(f"{window.power_w:.0f} W"),
            Cell(f"{words} mJ") if (words := measured.energy_words(each)) else NOTHING,
            NOTHING if side is None or side.peak_bytes is None else Cell(vocabulary.size(side.peak_bytes)),
        )
        rows.append(Row(f"{each.device}/{each.case}", cells))
    return rows


def means(evaluation: Evaluation) -> str:
    """Return the speed with baseline, caches and the cases that it covers."""
    speed = speed_of(evaluation)
    names = ", ".join(dict.fromkeys(clean(each.against) for each in evaluation.latency if each.against))
    caches = " and ".join(sorted({each.cache for each in evaluation.latency}))
    against = f" against {names}" if names else ""
    words = f"speedup{against}, {caches} caches: {speed.words}" if speed is not None else ""
    return "; ".join(filter(None, (words, clean(measured.missing_words(evaluation)))))


def remarks(latency: Iterable[Latency]) -> list[str]:
    """What a person must know before believing a row."""
    return [
        clean(text) for text in dict.fromkeys(text for each in latency for text in measured.remarks(each))
    ]


def _time(ms: float | None) -> Cell:
    return NOTHING if ms is None else Cell(vocabulary.microseconds(ms * 1e3))


def _side(latency: Latency, *, baseline: bool) -> Cell:
    """The median of a side; `< 18 us` if the launch hides it."""
    shortest = shortest_us(latency)
    side_ms = latency.baseline_ms if baseline else latency.candidate_ms
    if shortest is not None and side_ms * 1e3 < shortest:
        return Cell(f"< {vocabulary.microseconds(shortest)}")
    return _time(side_ms)


def _range(side: Timed) -> str:
    return f"{side.p10_ms * 1e3:.3g}-{vocabulary.microseconds(side.p90_ms * 1e3)}"


def _samples(latency: Latency) -> str:
    return "/".join(str(side.samples) for side in (latency.baseline, latency.candidate) if side is not None)


def _left_out(latency: Latency) -> Cell:
    sides = [side.left_out for side in (latency.baseline, latency.candidate) if side is not None]
    return Cell(str(sum(sides)), "warn" if sum(sides) else "dim") if sides else NOTHING


def _share(value: float | None, style: str) -> Cell:
    return NOTHING if value is None else Cell(f"{value:.0%}", style)


def _heat(window: Window) -> Cell:
    if window.hotspot_c is None and window.memory_c is None:
        return NOTHING
    told = ("?" if each is None else f"{each:.0f}" for each in (window.hotspot_c, window.memory_c))
    return Cell("/".join(told) + " C")
