"""Measured times of a candidate by case and GPU, and the state of the GPU during timing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness import Evaluation, Latency, Outcome
from harness.wire.limits import memory_words
from harness.wire.results.latency import DeviceState, Timed, Window
from harness.wire.results.roofs import is_launch_bound, roof_share
from harness.wire.results.serving_facts import serving_facts
from sessions.state.figure_words import us_words
from sessions.state.speed import case_words, speed_of
from tui.facts.tables import NOTHING, Cell, Column, Number, Row, Table, row
from tui.facts.vocabulary import UNKNOWN, percent, percent_change

from .certainty import against_words
from .roofs import NO_PRODUCT, has_peak_share, peak_share, shortest_us


def times_table(
    latency: Sequence[Latency],
    *,
    title: str = "",
    baseline: str = "",
    not_timed: Sequence[str] = (),
    shapes: Mapping[str, str] | None = None,
    before: Evaluation | None = None,
    before_name: str = "base",
) -> Table:
    """
    Return a row for each case and GPU with both medians, their ratio, and how far it can be trusted; empty without times.

    `baseline` is the name of the baseline for latencies without a name. `shapes` are sizes by case. `before` has the times
    of the attempt that this one was made from.
    """
    columns = time_columns(latency, baseline, before_name)
    return Table(title, columns, tuple(time_rows(latency, not_timed, shapes or {}, before)))


def time_columns(
    latency: Sequence[Latency], baseline: str = "", before_name: str = "base"
) -> tuple[Column, ...]:
    """Return the columns of `time_rows`."""
    names = {timing.against or baseline for timing in latency}
    name = names.pop() if len(names) == 1 else ""
    has_roof = any(roof_share(timing) for timing in latency)
    devices = {timing.device for timing in latency}
    return (
        Column("case", keep=True),
        Column("shape", drop=6, if_known=True),
        Column("GPU", keep=True, drop=0 if len(devices) > 1 else 7),
        Number(f"{name or 'baseline'} us", drop=2),
        Number("this us", drop=1),
        Column("speedup", keep=True),
        Column("outcome", keep=True, drop=5),
        Column("share of roof" if has_roof else "share of peak", keep=True, drop=4, if_known=True),
        Number(f"vs {before_name}", if_known=True, drop=3),
        Number("p10-p90 us", if_known=True, drop=10),
        Number("samples", if_known=True, drop=12),
        Number("left out", if_known=True, drop=9),
        Number("pairs", if_known=True, drop=11),
        Column("method", keep=True, drop=13),
        Column("confirmed by", keep=True, drop=8),
    )


def time_rows(
    latency: Sequence[Latency],
    not_timed: Sequence[str],
    shapes: Mapping[str, str],
    before: Evaluation | None = None,
) -> Iterator[Row]:
    """Yield a row for each timed case, `GPU|case` as its key, then one for each case without a time."""
    earlier = (
        {(timing.device, timing.case): timing.candidate_ms for timing in before.latency} if before else {}
    )
    for timing in latency:
        key = (timing.device, timing.case)
        yield replace(_time_row(timing, shapes.get(timing.case, ""), earlier.get(key)), key="|".join(key))
    for case in not_timed if latency else ():
        shape, missing = Cell(shapes.get(case, ""), "dim"), Cell("not timed", "warn")
        yield replace(row(case, shape, "", "", "", missing, *[""] * 9), key=f"|{case}")


def _time_row(timing: Latency, shape: str, before_ms: float | None) -> Row:
    style = {Outcome.FASTER: "good", Outcome.SLOWER: "bad"}.get(timing.outcome, "dim")
    sides = [side for side in (timing.baseline, timing.candidate) if side is not None]
    left_out = sum(side.left_out for side in sides)
    this = timing.candidate
    is_changed = before_ms and timing.candidate_ms and not is_hidden(timing)
    return row(
        timing.case,
        Cell(shape, "dim"),
        Cell(timing.device, "key"),
        side_us(timing, baseline=True),
        side_us(timing),
        Cell(case_words(timing) or timing.outcome.value, style),
        Cell("" if timing.speedup is None else timing.outcome.value, style),
        _share(timing),
        percent_change((before_ms or 0) / timing.candidate_ms - 1) if is_changed else "",
        Cell(range_words(this), "dim"),
        Cell("+".join(str(side.samples) for side in sides), "dim"),
        Cell(str(left_out) if sides else "", "warn" if left_out else "dim"),
        Cell(str(timing.pairs or ""), "dim"),
        Cell(f"{timing.method.value}{', hot' if timing.cache == 'hot' else ''}", "dim"),
        Cell(timing.confirmed, "warn" if timing.confirmed == "bound" else "dim"),
    )


def _share(timing: Latency) -> Cell:
    if is_launch_bound(timing):
        return Cell(f"{UNKNOWN} launch", "dim")
    share = roof_share(timing) or peak_share(timing)
    return Cell(f"{percent(share.share)} {share.limit_words}" if share else "")


def is_hidden(timing: Latency, *, baseline: bool = False) -> bool:
    """True if the time of a side is too near an empty kernel's to be known exactly."""
    shortest = shortest_us(timing)
    side_ms = timing.baseline_ms if baseline else timing.candidate_ms
    return shortest is not None and side_ms * 1e3 < shortest


def side_us(timing: Latency, *, baseline: bool = False) -> str:
    """
    Return the median of a side in microseconds, with `<` if the launch hides it: `<18.0`.

    The side takes less than this median, which has the launch in it. A bound of the ratio is from the same medians.
    """
    sign = "<" if is_hidden(timing, baseline=baseline) else ""
    return sign + us_words(timing.baseline_ms if baseline else timing.candidate_ms)


def range_words(side: Timed | None) -> str:
    """Return the 10th and the 90th percentile of the samples in microseconds: `129.8-131.0`; empty without samples."""
    return "" if side is None else f"{us_words(side.p10_ms)}-{us_words(side.p90_ms)}"


def times_tables(evaluation: Evaluation, baseline: str = "") -> list[Table]:
    """Return the times with the speed that they give, and the device during timing; empty without times."""
    latency = evaluation.latency
    if not latency:
        return []
    states = (("before", evaluation.device_before), ("after", evaluation.device_after))
    caches = " and ".join(sorted({timing.cache for timing in latency}))
    title = f"times by case and GPU, {caches} caches"
    times = times_table(latency, title=title, baseline=baseline, not_timed=evaluation.not_timed)
    speed = speed_of(evaluation)
    gained = f"speedup{against_words(evaluation, baseline)}: {speed.words}" if speed is not None else ""
    notes = (
        *(f"{word}: {words}" for word, state in states if state and (words := state_words(state))),
        *dict.fromkeys(text for timing in latency for text in remarks(timing)),
    )
    product = NO_PRODUCT if has_peak_share(evaluation) else ""
    return [
        times.with_sentences(gained, missing_words(evaluation), product),
        device_table(latency).with_sentences(*notes),
    ]


def missing_words(evaluation: Evaluation) -> str:
    """Return `5 of 7 cases have a ratio, the others count as 1.00; ...` with the names of the others; empty if all have."""
    if not evaluation.in_part:
        return ""
    counts = f"{evaluation.in_part} have a ratio, the others count as 1.00"
    return "; ".join((counts, *missing_cases(evaluation)))


def missing_cases(evaluation: Evaluation) -> list[str]:
    """Return the names of the cases without a ratio, for each reason: `too short on both sides: one-row`."""
    short = [timing.case for timing in evaluation.latency if timing.speedup is None]
    why = f" ({evaluation.why_not_timed})" if evaluation.why_not_timed else ""
    reasons = (("too short on both sides", short), (f"without a latency{why}", evaluation.not_timed))
    return [f"{reason}: {', '.join(cases)}" for reason, cases in reasons if cases]


def exam_tables(exam: Evaluation | None) -> Iterator[Table]:
    """Yield what the exam timed again, and what it measured about serving, on its own cases."""
    if exam is None:
        return
    if exam.latency:
        words = "timed again for the exam, in new processes and on new values; this speedup counts"
        yield Table("").with_sentences(words, style="head")
        yield from times_tables(exam)
    if exam.serving:
        yield serving_table(exam, "serving, measured again in the exam")


def serving_table(evaluation: Evaluation, title: str = "serving") -> Table:
    """Return the facts that decide whether a kernel can be served; empty if it is not correct and was not timed."""
    rows = (
        row(Cell(fact.name, "dim"), Cell(fact.value, "warn" if fact.is_obstacle else ""))
        for fact in serving_facts(evaluation)
    )
    return Table(title, (Column("", keep=True), Column("")), tuple(rows))


def device_table(latency: Sequence[Latency]) -> Table:
    """Return the shares of the device's peaks and its telemetry by case; empty if nothing is known."""
    columns = (
        Column("case", keep=True),
        Column("GPU", keep=True),
        Number("IOU", if_known=True),
        Number("of a copy", if_known=True),
        Number("MFU", if_known=True),
        Number("of a product", if_known=True),
        Number("floor us", if_known=True, drop=5),
        Number("back to back us", if_known=True, drop=6),
        Number("sustained us", if_known=True, drop=7),
        Number("lowest MHz", if_known=True, drop=1),
        Column("throttled", keep=True, if_known=True, drop=2),
        Number("others", if_known=True, drop=3),
        Number("hot/memory C", if_known=True, drop=8),
        Number("W", if_known=True, drop=9),
        Number("peak memory", if_known=True, drop=10),
    )
    rows = tuple(map(_device_row, latency))
    is_known = any(cell.text not in NOTHING for shown in rows for cell in shown.cells[2:])
    return Table("device during timing, and share of its peak", columns, rows if is_known else ())


def _device_row(timing: Latency) -> Row:
    used, side = timing.efficiency, timing.candidate
    window = timing.window or Window(source="", seconds=0.0)
    suspect = "bad" if used is not None and used.suspect else ""
    shares = (used.io_utilisation, used.io_measured, used.mfu, used.mfu_measured) if used else (None,) * 4
    heat = heat_words(window)
    return row(
        timing.case,
        Cell(timing.device, "key"),
        *(Cell("" if share is None else f"{share:.0%}", suspect) for share in shares),
        us_words(timing.floor_ms),
        us_words(None if side is None else side.plain_ms),
        sustained_words(timing),
        "" if window.clock_mhz is None else clock_words(window),
        Cell(throttle_words(window), "warn"),
        Cell(_whole(window.other_processes), "bad" if window.other_processes else "dim"),
        heat,
        _whole(window.power_w),
        memory_words(None if side is None else side.peak_bytes),
    )


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def heat_words(window: Window) -> str:
    """Return the temperatures of the hottest spot and of the memory: `61/54`; empty if both are unknown."""
    celsius = [_whole(value) or UNKNOWN for value in (window.hotspot_c, window.memory_c)]
    return "" if celsius == [UNKNOWN, UNKNOWN] else "/".join(celsius)


def remarks(timing: Latency) -> list[str]:
    """Return what a reader must know before trusting the latency of a case."""
    lines = []
    if timing.efficiency is not None and timing.efficiency.suspect:
        lines.append(f"{timing.case}: suspect: {timing.efficiency.suspect}")
    if timing.outcome is Outcome.TOO_SHORT and timing.floor_ms is not None:
        floor = us_words(timing.floor_ms)
        lines.append(
            f"{timing.case}: near the {floor} us of an empty kernel on both sides: no ratio is given"
        )
    if timing.configs:
        chosen = "; ".join(f"{name} {config}" for name, config in timing.configs.items())
        lines.append(f"{timing.case}: timed with {chosen}")
    return lines + [f"{timing.case}: {note}" for note in timing.notes]


def sustained_words(timing: Latency) -> str:
    """Return the sustained times of candidate and baseline, `12.1 / 15.3`; empty if both are unknown."""
    times = [None if side is None else side.sustained_ms for side in (timing.candidate, timing.baseline)]
    return " / ".join(map(us_words, times)) if any(times) else ""


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
        "" if state.clock_mhz is None else f"{state.clock_mhz} MHz",
        "" if state.busy_percent is None else f"{state.busy_percent:.0f} % busy",
        "" if state.memory_used_bytes is None else f"{memory_words(state.memory_used_bytes)} in use",
        "" if state.hotspot_c is None else f"{state.hotspot_c:.0f} C",
        "" if state.other_processes is None else f"{state.other_processes} other processes",
    )
    return ", ".join(filter(None, facts))
