"""Timing results of a candidate as plain text."""

from __future__ import annotations

from harness import Evaluation, Latency, Outcome
from harness.wire.latency import DeviceState, LaunchTime, Window

from .plain import indented, table, wrapped
from .tables import Column
from .vocabulary import UNKNOWN, size, speedup

ENERGY = (
    "mJ a call: candidate / baseline, energy of the whole device over plain calls back to back, "
    "with the caches as these calls leave them"
)


def timing(evaluation: Evaluation, baseline: str = "") -> str:
    """
    Return times and state of the device by case and GPU; empty without times.

    `baseline` is the name of the timing baseline for latencies without a name.
    """
    latency = evaluation.latency
    if not latency:
        return ""
    names = {row.against or baseline for row in latency}
    caches = " and ".join(sorted({row.cache for row in latency}))
    name = names.pop() if len(names) == 1 else "baseline"
    columns = [
        Column("case", keep=True),
        Column("device", keep=True),
        Column(f"{name or 'baseline'} us", right=True),
        Column("candidate us", right=True),
        Column("speedup", right=True),
        Column("95 %", right=True),
        Column("outcome"),
        Column("p10-p90 us", right=True, if_known=True, drop=4),
        Column("samples", right=True, if_known=True, drop=5),
        Column("left out", right=True, if_known=True, drop=3),
        Column("pairs", right=True, if_known=True, drop=6),
        Column("method", drop=7),
        Column("confirmed by", drop=1),
    ]
    title = f"latency (measured, {caches} caches)"
    blocks = [title + "\n" + table(columns, [_times(row) for row in latency], indent=2)]
    if evaluation.in_part:
        blocks.append(wrapped(indented(missing_words(evaluation))))
    blocks.append(_device_use(latency))
    for word, state in (("before", evaluation.device_before), ("after", evaluation.device_after)):
        words = "" if state is None else state_words(state)
        blocks.append(wrapped(indented(f"{word}: {words}")) if words else "")
    blocks.append(wrapped("\n".join(map(indented, _remarks(latency)))))
    return "\n".join(filter(None, blocks))


def missing_words(evaluation: Evaluation) -> str:
    """Return `5 of 7 cases have a ratio, the others count as 1.00; ...` with the names of the others; empty if all have."""
    if not evaluation.in_part:
        return ""
    short = [latency.case for latency in evaluation.latency if latency.speedup is None]
    parts = (
        f"{evaluation.in_part} have a ratio, the others count as 1.00",
        f"too short on both sides: {', '.join(short)}" if short else "",
        f"without a latency: {', '.join(evaluation.not_timed)}" if evaluation.not_timed else "",
    )
    return "; ".join(filter(None, parts))


def _times(row: Latency) -> tuple[str, ...]:
    sides = [side for side in (row.baseline, row.candidate) if side is not None]
    return (
        row.case,
        row.device,
        _us(row.baseline_ms),
        _us(row.candidate_ms),
        UNKNOWN if row.speedup is None else speedup(row.speedup, row.bound),
        _interval(row.ci),
        row.outcome.value,
        f"{_us(row.candidate.p10_ms)}-{_us(row.candidate.p90_ms)}" if row.candidate else UNKNOWN,
        "/".join(str(side.samples) for side in sides) or UNKNOWN,
        str(sum(side.left_out for side in sides)) if sides else UNKNOWN,
        str(row.pairs) if row.pairs else UNKNOWN,
        f"{row.method.value}{', hot' if row.cache == 'hot' else ''}",
        row.confirmed,
    )


def _device_use(latency: tuple[Latency, ...]) -> str:
    """Return efficiency and telemetry by case; empty if neither is known."""
    rows = [_device_row(row) for row in latency]
    if all(cell == UNKNOWN for row in rows for cell in row[2:]):
        return ""
    columns = [
        Column("case", keep=True),
        Column("device", keep=True),
        Column("IOU", right=True, if_known=True),
        Column("of a copy", right=True, if_known=True),
        Column("MFU", right=True, if_known=True),
        Column("of a product", right=True, if_known=True),
        Column("floor us", right=True, if_known=True, drop=4),
        Column("back to back us", right=True, if_known=True, drop=6),
        Column("lowest MHz", right=True, if_known=True),
        Column("throttled", if_known=True),
        Column("others", right=True, if_known=True, drop=1),
        Column("hot/memory C", right=True, if_known=True, drop=7),
        Column("W", right=True, if_known=True, drop=8),
        Column("mJ a call", right=True, if_known=True, drop=9),
        Column("peak memory", right=True, if_known=True, drop=10),
    ]
    return "device during timing, and share of its peak\n" + table(columns, rows, indent=2)


def _device_row(row: Latency) -> tuple[str, ...]:
    used, side, window = row.efficiency, row.candidate, row.window or Window(source="", seconds=0.0)
    heat = [
        UNKNOWN if celsius is None else f"{celsius:.0f}" for celsius in (window.hotspot_c, window.memory_c)
    ]
    return (
        row.case,
        row.device,
        UNKNOWN if used is None or used.io_utilisation is None else f"{used.io_utilisation:.0%}",
        UNKNOWN if used is None or used.io_measured is None else f"{used.io_measured:.0%}",
        UNKNOWN if used is None or used.mfu is None else f"{used.mfu:.0%}",
        UNKNOWN if used is None or used.mfu_measured is None else f"{used.mfu_measured:.0%}",
        _us(row.floor_ms),
        _us(None if side is None else side.plain_ms),
        UNKNOWN if window.clock_mhz is None else clock_words(window),
        throttle_words(window) or UNKNOWN,
        UNKNOWN if window.other_processes is None else str(window.other_processes),
        UNKNOWN if heat == [UNKNOWN, UNKNOWN] else "/".join(heat),
        UNKNOWN if window.power_w is None else f"{window.power_w:.0f}",
        energy_words(row) or UNKNOWN,
        size(None if side is None else side.peak_bytes),
    )


def _remarks(latency: tuple[Latency, ...]) -> list[str]:
    lines = list(dict.fromkeys(text for row in latency for text in remarks(row)))
    return [*lines, ENERGY] if any(energy_words(row) for row in latency) else lines


def remarks(row: Latency) -> list[str]:
    """Return warnings and notes about the latency of a case."""
    lines = []
    if row.efficiency is not None and row.efficiency.suspect:
        lines.append(f"{row.case}: suspect: {row.efficiency.suspect}")
    if row.outcome is Outcome.TOO_SHORT and row.floor_ms is not None:
        floor = f"{row.floor_ms * 1e3:.3g} us"
        lines.append(f"{row.case}: near the {floor} of an empty kernel on both sides: no ratio is given")
    if row.launches:
        beside = (
            f"; {row.against or 'baseline'}: {launch_words(row.baseline_launches)}"
            if row.baseline_launches
            else ""
        )
        lines.append(f"{row.case}: by launch: {launch_words(row.launches)}{beside}")
    elif row.baseline_launches:
        lines.append(
            f"{row.case}: {row.against or 'baseline'} by launch: {launch_words(row.baseline_launches)}"
        )
    if row.configs:
        chosen = "; ".join(f"{name} {config}" for name, config in row.configs.items())
        lines.append(f"{row.case}: timed with {chosen}")
    return lines


def launch_words(launches: tuple[LaunchTime, ...]) -> str:
    """Return the time of each launch of a call: `partial 3.21 us, combine 1.05 us`."""
    return ", ".join(f"{launch.kernel} {launch.ms * 1e3:.3g} us" for launch in launches)


def energy_words(row: Latency) -> str:
    """Return millijoules per call of candidate and baseline, `12.1 / 15.3`; empty if the candidate's are unknown."""
    sides = [None if side is None else side.energy_mj for side in (row.candidate, row.baseline)]
    return "" if sides[0] is None else " / ".join(f"{energy:.3g}" for energy in sides if energy is not None)


def clock_words(window: Window) -> str:
    """Return the lowest clock in MHz, and the usual clock if it differs: `1755 of 1980`."""
    usual = window.clock_usual_mhz
    return f"{window.clock_mhz}{f' of {usual}' if usual and usual != window.clock_mhz else ''}"


def throttle_words(window: Window) -> str:
    """Return the causes of throttling, `power cap 12%`, or `+3` for a counter without a share; empty if there are none."""
    return ", ".join(
        f"{name} {share:.0%}" if share <= 1 else f"{name} +{share:.0f}"
        for name, share in sorted(window.throttled.items(), key=lambda cause: -cause[1])
    )


def state_words(state: DeviceState) -> str:
    """Return the known facts about a device before or after timing, on one line."""
    facts = (
        state.product,
        state.partition,
        "" if state.clock_mhz is None else f"{state.clock_mhz} MHz",
        "" if state.busy_percent is None else f"{state.busy_percent:.0f} % busy",
        "" if state.memory_used_bytes is None else f"{size(state.memory_used_bytes)} in use",
        "" if state.hotspot_c is None else f"{state.hotspot_c:.0f} C",
        "" if state.power_cap_w is None else f"cap {state.power_cap_w:.0f} W",
        "" if state.other_processes is None else f"{state.other_processes} other processes",
    )
    return ", ".join(filter(None, facts))


def _interval(ci: tuple[float, float] | None) -> str:
    return UNKNOWN if ci is None else f"{ci[0]:.3f}-{ci[1]:.3f}"


def _us(ms: float | None) -> str:
    """Milliseconds as microseconds, in four digits."""
    return UNKNOWN if ms is None else f"{ms * 1e3:.4g}" if ms < 10 else f"{ms * 1e3:.0f}"
