"""What timing measured of a candidate, in plain text."""

from __future__ import annotations

from harness import Evaluation, Latency, Outcome
from harness.wire.latency import DeviceState, Window

from .plain import UNKNOWN, Column, indented, size, table, wrapped

ENERGY = "energy a call, candidate's / baseline's: the whole device's, over plain calls back to back with caches as these leave them"


def timing(evaluation: Evaluation, baseline: str = "") -> str:
    """Times by case and GPU, and how the GPU fared meanwhile; `baseline` names what nobody else named. Empty without times."""
    latency = evaluation.latency
    if not latency:
        return ""
    names = {each.against or baseline for each in latency}
    caches = " and ".join(sorted({each.cache for each in latency}))
    name = names.pop() if len(names) == 1 else "baseline"
    columns = [
        Column("case", keep=True),
        Column("device", keep=True),
        Column(f"{name or 'baseline'} ms", right=True),
        Column("candidate ms", right=True),
        Column("speedup", right=True),
        Column("95 %", right=True),
        Column("outcome"),
        Column("p10-p90 ms", right=True, if_known=True, drop=4),
        Column("samples", right=True, if_known=True, drop=5),
        Column("left out", right=True, if_known=True, drop=3),
        Column("pairs", right=True, if_known=True, drop=6),
        Column("best so far", right=True, if_known=True, drop=2),
        Column("confirmed by", drop=1),
    ]
    title = f"latency (measured, {caches} caches)"
    blocks = [title + "\n" + table(columns, [_times(each) for each in latency], indent=2)]
    if evaluation.in_part:
        blocks.append(wrapped(indented(missing_words(evaluation))))
    blocks.append(_fared(latency))
    for word, state in (("before", evaluation.device_before), ("after", evaluation.device_after)):
        told = "" if state is None else state_words(state)
        blocks.append(wrapped(indented(f"{word}: {told}")) if told else "")
    blocks.append(wrapped("\n".join(indented(each) for each in _remarks(latency))))
    return "\n".join(filter(None, blocks))


def missing_words(evaluation: Evaluation) -> str:
    """`not whole: 5 of 7 cases timed, so there is no overall speedup; without a latency: fp32, fp16`; empty where timing was whole."""
    if not evaluation.in_part:
        return ""
    names = ", ".join(evaluation.not_timed)
    return f"{evaluation.in_part} timed, so there is no overall speedup; without a latency: {names}"


def _times(each: Latency) -> tuple[str, ...]:
    sides = [side for side in (each.baseline, each.candidate) if side is not None]
    return (
        each.case,
        each.device,
        f"{each.baseline_ms:.4f}",
        f"{each.candidate_ms:.4f}",
        _ratio(each.speedup),
        _interval(each.ci),
        each.outcome.value,
        f"{each.candidate.p10_ms:.4f}-{each.candidate.p90_ms:.4f}" if each.candidate else UNKNOWN,
        "/".join(str(side.samples) for side in sides) or UNKNOWN,
        str(sum(side.left_out for side in sides)) if sides else UNKNOWN,
        str(each.pairs) if each.pairs else UNKNOWN,
        UNKNOWN if each.rival_speedup is None else f"{_ratio(each.rival_speedup)} {_interval(each.rival_ci)}",
        each.confirmed,
    )


def _fared(latency: tuple[Latency, ...]) -> str:
    """What was achieved of the device, and what it told of itself; empty where nothing is known of either."""
    rows = [_facts(each) for each in latency]
    if all(cell == UNKNOWN for row in rows for cell in row[2:]):
        return ""
    columns = [
        Column("case", keep=True),
        Column("device", keep=True),
        Column("IOU", right=True, if_known=True),
        Column("MFU", right=True, if_known=True),
        Column("floor ms", right=True, if_known=True, drop=4),
        Column("graph ms", right=True, if_known=True, drop=5),
        Column("launches ms", right=True, if_known=True, drop=6),
        Column("lowest MHz", right=True, if_known=True),
        Column("throttled", if_known=True),
        Column("others", right=True, if_known=True, drop=1),
        Column("hot/memory C", right=True, if_known=True, drop=7),
        Column("W", right=True, if_known=True, drop=8),
        Column("mJ a call", right=True, if_known=True, drop=9),
        Column("peak memory", right=True, if_known=True, drop=10),
    ]
    return "the device meanwhile, and what was achieved of it\n" + table(columns, rows, indent=2)


def _facts(each: Latency) -> tuple[str, ...]:
    used, side, window = each.efficiency, each.candidate, each.window or Window(source="", seconds=0.0)
    heat = [UNKNOWN if told is None else f"{told:.0f}" for told in (window.hotspot_c, window.memory_c)]
    return (
        each.case,
        each.device,
        UNKNOWN if used is None or used.io_utilisation is None else f"{used.io_utilisation:.0%}",
        UNKNOWN if used is None or used.mfu is None else f"{used.mfu:.0%}",
        _ms(each.floor_ms),
        _ms(None if side is None else side.graph_ms),
        _ms(None if side is None else side.plain_ms),
        UNKNOWN if window.clock_mhz is None else clock_words(window),
        throttle_words(window) or UNKNOWN,
        UNKNOWN if window.other_processes is None else str(window.other_processes),
        UNKNOWN if heat == [UNKNOWN, UNKNOWN] else "/".join(heat),
        UNKNOWN if window.power_w is None else f"{window.power_w:.0f}",
        energy_words(each) or UNKNOWN,
        size(None if side is None else side.peak_bytes),
    )


def _remarks(latency: tuple[Latency, ...]) -> list[str]:
    found = list(dict.fromkeys(text for each in latency for text in remarks(each)))
    return [*found, ENERGY] if any(energy_words(each) for each in latency) else found


def remarks(each: Latency) -> list[str]:
    """What a person must know before believing a case's row."""
    found = []
    if each.efficiency is not None and each.efficiency.suspect:
        found.append(f"{each.case}: suspect: {each.efficiency.suspect}")
    if each.outcome is Outcome.TOO_SHORT and each.floor_ms is not None:
        floor = f"{each.floor_ms * 1e3:.3g} us"
        found.append(f"{each.case}: below five times the {floor} of an empty kernel: no ratio is given")
    if each.configs:
        chosen = "; ".join(f"{name} {config}" for name, config in each.configs.items())
        found.append(f"{each.case}: timed with {chosen}")
    return found


def energy_words(each: Latency) -> str:
    """Millijoules a call of the candidate, and of what it was timed against: `12.1 / 15.3`. Empty where the candidate's is not known."""
    sides = [None if side is None else side.energy_mj for side in (each.candidate, each.baseline)]
    return "" if sides[0] is None else " / ".join(f"{one:.3g}" for one in sides if one is not None)


def clock_words(window: Window) -> str:
    """The lowest clock, and the usual one where it is another: `1755 of 1980`, MHz."""
    usual = window.clock_usual_mhz
    return f"{window.clock_mhz}{f' of {usual}' if usual and usual != window.clock_mhz else ''}"


def throttle_words(window: Window) -> str:
    """What held the clock back: `power cap 12%`; as the counter grew, where it is no share. Empty where nothing did."""
    return ", ".join(
        f"{name} {share:.0%}" if share <= 1 else f"{name} +{share:.0f}"
        for name, share in sorted(window.throttled.items(), key=lambda each: -each[1])
    )


def state_words(state: DeviceState) -> str:
    """A device before or after timing, on one line: only what it tells."""
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


def _ratio(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}x"


def _interval(ci: tuple[float, float] | None) -> str:
    return UNKNOWN if ci is None else f"{ci[0]:.2f}-{ci[1]:.2f}"


def _ms(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4f}"
