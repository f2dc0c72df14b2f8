"""Everything that is known of one cell: on one line below the table, and whole in a dialog."""

from __future__ import annotations

from harness import Latency
from harness.wire.latency import LaunchTime, Method, Timed, Window
from tui.cockpit.draw.lines import Line, Span, clean, line
from tui.facts.evaluation.times import (
    clock_words,
    energy_words,
    heat_words,
    is_hidden,
    launch_words,
    remarks,
    side_us,
    throttle_words,
)
from tui.facts.vocabulary import UNKNOWN, interval, microseconds, percent, size, speedup

from .captions import packed
from .timings import BASELINE, Case, Timings, gpu_name


def detail_lines(timings: Timings, case: Case, column: str, width: int) -> list[Line]:
    """Return time, range, samples and telemetry of the cell of a case in a column."""
    latency = cell_latency(timings, case, column)
    name = f"{column} {case.letter}"
    if latency is None:
        device = next((device for device in timings.devices if gpu_name(device) == column), "")
        reason = timings.reasons.get(device)
        return packed([Span(f"{name}: {clean(reason.words) if reason else 'not timed'}", "dim")], width)
    baseline = column == BASELINE
    side = latency.baseline if baseline else latency.candidate
    figures = [
        f"{name}: {side_us(latency, baseline=baseline)} us",
        "" if is_hidden(latency, baseline=baseline) else range_words(side),
        "" if side is None else f"{side.samples} samples",
        *_telemetry(latency.window),
        launches_words(latency.baseline_launches if baseline else latency.launches),
    ]
    again = timings.again.get(case.name)
    if again is not None and column == gpu_name(timings.device):
        figures.append(f"timed again: {side_us(again)} us")
    return packed([Span(figure) for figure in figures if figure], width)


def cell_latency(timings: Timings, case: Case, column: str) -> Latency | None:
    """Return the times behind a cell; the baseline's column is of the GPU of the speedup."""
    if column == BASELINE:
        return timings.own(case)
    device = next((device for device in timings.devices if gpu_name(device) == column), "")
    return timings.by_place.get((device, case.name))


def range_words(side: Timed | None) -> str:
    """Return `p10-p90 129.8-131.0`; empty without samples."""
    return "" if side is None else f"p10-p90 {side.p10_ms * 1e3:.4g}-{side.p90_ms * 1e3:.4g}"


def launches_words(launches: tuple[LaunchTime, ...]) -> str:
    """Return `launches 2: partial 75 %, combine 25 %`; empty for one launch, or if they are not known."""
    total = sum(launch.ms for launch in launches)
    if len(launches) < 2 or total <= 0:
        return ""
    shares = ", ".join(f"{clean(launch.kernel)} {round(100 * launch.ms / total)} %" for launch in launches)
    return f"launches {len(launches)}: {shares}"


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
        return [*detail_lines(timings, case, column, 70)]
    lines: list[Line | str] = [*_sides(latency), (), *_facts(latency)]
    lines += [clean(text) for text in remarks(latency)]
    again = timings.again.get(case.name)
    if again is not None and latency.device == timings.device:
        lines += [(), line("timed again in new processes", "head"), *_sides(again)]
    return lines


def _sides(latency: Latency) -> list[Line]:
    base, this = latency.baseline, latency.candidate
    rows = [
        ("", clean(latency.against) or "baseline", "this attempt"),
        ("median", f"{side_us(latency, baseline=True)} us", f"{side_us(latency)} us"),
        ("p10", *(_us(side.p10_ms if side else None) for side in (base, this))),
        ("p90", *(_us(side.p90_ms if side else None) for side in (base, this))),
        ("samples", *(str(side.samples) if side else UNKNOWN for side in (base, this))),
        ("samples left out", *(str(side.left_out) if side else UNKNOWN for side in (base, this))),
        ("processes", *(str(side.processes) if side else UNKNOWN for side in (base, this))),
        ("back to back, warm", *(_us(side.plain_ms if side else None) for side in (base, this))),
        ("peak memory", *(size(side.peak_bytes if side else None) for side in (base, this))),
    ]
    return [
        (Span(f"{name:<19}", "dim"), Span(f"{first:>16}{second:>16}", "" if name else "head"))
        for name, first, second in rows
        if not name or {first, second} != {UNKNOWN}
    ]


def _facts(latency: Latency) -> list[Line]:
    window = latency.window
    used = latency.efficiency
    ratio = UNKNOWN if latency.speedup is None else speedup(latency.speedup, latency.bound)
    facts = [
        ("speedup", f"{ratio} {interval(*latency.ci)}" if latency.ci and not latency.bound.sign else ratio),
        ("outcome", latency.outcome.value),
        ("pairs of processes", str(latency.pairs) if latency.pairs else ""),
        (
            "method",
            "many calls in one graph" if latency.method is Method.GRAPH else "each call between two events",
        ),
        ("cache", "warm" if latency.cache == "hot" else latency.cache),
        ("confirmed by", latency.confirmed),
        ("empty kernel", "" if latency.floor_ms is None else microseconds(latency.floor_ms * 1e3)),
        ("of the copy", "" if used is None else percent(used.io_measured)),
        ("of the product", "" if used is None else percent(used.mfu_measured)),
        ("of vendor's bytes/s", "" if used is None else percent(used.io_utilisation)),
        ("of vendor's FLOP/s", "" if used is None else percent(used.mfu)),
    ]
    if window is not None:
        facts += [
            ("lowest clock", f"{clock_words(window)} MHz" if window.clock_mhz is not None else ""),
            ("throttled", throttle_words(window)),
            ("power", "" if window.power_w is None else f"{window.power_w:.0f} W"),
            ("hottest/memory", f"{heat} C" if (heat := heat_words(window)) else ""),
            ("other processes", "" if window.other_processes is None else str(window.other_processes)),
        ]
    facts += [
        ("energy a call", f"{energy} mJ" if (energy := energy_words(latency)) else ""),
        ("launches", launch_words(latency.launches)),
        ("baseline's launches", launch_words(latency.baseline_launches)),
    ]
    return [
        (Span(f"{name:<21}", "dim"), Span(clean(words)))
        for name, words in facts
        if words not in ("", UNKNOWN)
    ]


def _us(ms: float | None) -> str:
    return UNKNOWN if ms is None else f"{ms * 1e3:.4g} us"
