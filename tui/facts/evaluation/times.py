"""Measured times of a candidate by case and GPU, and the state of the GPU during timing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness import Evaluation, Latency, Outcome
from harness.wire.limits import memory_words
from harness.wire.results.latency import DeviceReading, Efficiency, Timed, Window
from harness.wire.results.serving_facts import serving_facts
from sessions.state.cases import CaseRow, case_rows
from sessions.state.figure_words import us_words
from sessions.state.speed import speed_of
from tui.facts.tables import NOTHING, Cell, Column, Field, Number, Table, columns_of, row, rows_of, table_of
from tui.facts.vocabulary import UNKNOWN, percent, percent_change

from .certainty import against_words
from .roofs import NO_PRODUCT, has_peak_share


def times_table(rows: Sequence[CaseRow], title: str = "", before_name: str = "base") -> Table:
    """Return a row for each case and GPU: both medians, their ratio, and how far it can be trusted. Its key is `GPU|case`."""
    fields = time_fields(rows, before_name)
    return Table(title, columns_of(fields), rows_of(fields, rows, lambda row: row.key))


def time_fields(rows: Sequence[CaseRow], before_name: str = "base") -> tuple[Field[CaseRow], ...]:
    """Return the columns of these rows."""
    timed = [row for row in rows if row.latency is not None]
    names, devices = {row.against for row in timed}, {row.device for row in timed}
    name = names.pop() if len(names) == 1 else ""
    has_roof = any(row.roof for row in timed)

    def share(row: CaseRow) -> Cell:
        if row.limit == "launch":
            return Cell(f"{UNKNOWN} launch", "dim")
        reached = row.roof or row.peak
        if reached is None:
            return Cell("")
        words = f"{reached.limit} peak" if has_roof and row.roof is None else reached.limit_words
        return Cell(f"{percent(reached.share)} {words}")

    return (
        Field(Column("case", keep=True), lambda row: row.case),
        Field(Column("shape", drop=6, if_known=True), lambda row: row.shape, "dim"),
        Field(Column("GPU", keep=True, drop=0 if len(devices) > 1 else 7), lambda row: row.device, "key"),
        Field(Number(f"{name or 'baseline'} us", drop=2), lambda row: str(row.baseline)),
        Field(Number("this us", drop=1), lambda row: str(row.candidate)),
        Field(Column("speedup", keep=True), lambda row: Cell(row.words, case_style(row))),
        Field(
            Column("outcome", keep=True, drop=5),
            lambda row: Cell("" if row.outcome is None or row.reason else row.outcome.value, case_style(row)),
        ),
        Field(
            Column("share of roof" if has_roof else "share of peak", keep=True, drop=4, if_known=True), share
        ),
        Field(
            Number(f"vs {before_name}", if_known=True, drop=3),
            lambda row: "" if row.gain is None else percent_change(row.gain),
        ),
        Field(
            Number("p10-p90 us", if_known=True, drop=10), lambda row: range_words(row.candidate.timed), "dim"
        ),
        _of_timed(
            Number("samples", if_known=True, drop=12),
            lambda timed: "+".join(str(side.samples) for side in _sides(timed)),
        ),
        _of_timed(Number("left out", if_known=True, drop=9), _left_out),
        _of_timed(Number("pairs", if_known=True, drop=11), lambda timed: str(timed.pairs or "")),
        _of_timed(
            Column("method", keep=True, drop=13),
            lambda timed: f"{timed.method.value}{', hot' if timed.cache == 'hot' else ''}",
        ),
        _of_timed(
            Column("confirmed by", keep=True, drop=8),
            lambda timed: Cell(timed.confirmed, "warn" if timed.confirmed == "bound" else "dim"),
        ),
    )


def _of_timed(column: Column, value: Callable[[Latency], Cell | str]) -> Field[CaseRow]:
    """Return a column of what was measured with the times, unknown for a case without a time."""
    return Field(column, lambda row: "" if row.latency is None else value(row.latency), "dim")


def _sides(timed: Latency) -> list[Timed]:
    return [side for side in (timed.baseline, timed.candidate) if side is not None]


def _left_out(timed: Latency) -> Cell:
    sides = _sides(timed)
    left_out = sum(side.left_out for side in sides)
    return Cell(str(left_out) if sides else "", "warn" if left_out else "dim")


def case_style(row: CaseRow) -> str:
    """Return `good` for a case that is faster by an exact ratio, `bad` for a slower one, `warn` for one without a time."""
    if row.outcome is None:
        return "warn"
    if row.sign and row.outcome is Outcome.FASTER:
        return ""
    return {Outcome.FASTER: "good", Outcome.SLOWER: "bad"}.get(row.outcome, "dim")


def range_words(side: Timed | None) -> str:
    """Return the 10th and the 90th percentile of the samples in microseconds: `129.8-131.0`; empty without samples."""
    return "" if side is None else f"{us_words(side.p10_ms)}-{us_words(side.p90_ms)}"


def times_tables(evaluation: Evaluation, baseline: str = "", when: str = "") -> list[Table]:
    """Return the times with the speed that they give, and the device during timing; empty without times.

    `when` is ` before the exam` or ` in the exam` for an attempt that was timed twice.
    """
    rows, speed = case_rows(evaluation, baseline), speed_of(evaluation)
    if not rows:
        return []
    states = (("before", evaluation.device_before), ("after", evaluation.device_after))
    caches = " and ".join(sorted({timing.cache for timing in evaluation.latency}))
    gained = f"speedup{against_words(evaluation, baseline)}: {speed.words}" if speed is not None else ""
    notes = (
        *(f"{word}: {words}" for word, state in states if state and (words := state_words(state))),
        *dict.fromkeys(text for timing in evaluation.latency for text in remarks(timing)),
    )
    product = NO_PRODUCT if has_peak_share(rows) else ""
    return [
        times_table(rows, f"times{when} by case and GPU, {caches} caches").with_sentences(
            gained, missing_words(evaluation), product
        ),
        device_table(evaluation.latency).with_sentences(*notes),
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
        yield from times_tables(exam, when=" in the exam")
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
    table = table_of("device during timing, and share of its peak", DEVICE, latency)
    is_known = any(cell.text not in NOTHING for shown in table.rows for cell in shown.cells[2:])
    return table if is_known else replace(table, rows=())


def _share(title: str, share: Callable[[Efficiency], float | None]) -> Field[Latency]:
    def cell(timing: Latency) -> Cell:
        used = timing.efficiency
        value = None if used is None else share(used)
        return Cell(
            "" if value is None else f"{value:.0%}", "bad" if used is not None and used.suspect else ""
        )

    return Field(Number(title, if_known=True), cell)


def _telemetry(column: Column, value: Callable[[Window], Cell | str], style: str = "") -> Field[Latency]:
    return Field(column, lambda timing: "" if timing.window is None else value(timing.window), style)


DEVICE: tuple[Field[Latency], ...] = (
    Field(Column("case", keep=True), lambda timing: timing.case),
    Field(Column("GPU", keep=True), lambda timing: timing.device, "key"),
    _share("IOU", lambda used: used.io_utilisation),
    _share("of a copy", lambda used: used.io_measured),
    _share("MFU", lambda used: used.mfu),
    _share("of a product", lambda used: used.mfu_measured),
    Field(Number("floor us", if_known=True, drop=5), lambda timing: us_words(timing.floor_ms)),
    Field(
        Number("back to back us", if_known=True, drop=6),
        lambda timing: us_words(timing.candidate.plain_ms if timing.candidate is not None else None),
    ),
    Field(Number("sustained us", if_known=True, drop=7), lambda timing: sustained_words(timing)),
    _telemetry(Number("lowest MHz", if_known=True, drop=1), lambda window: clock_words(window)),
    _telemetry(
        Column("throttled", keep=True, if_known=True, drop=2), lambda window: throttle_words(window), "warn"
    ),
    _telemetry(
        Number("others", if_known=True, drop=3),
        lambda window: Cell(_whole(window.other_processes), "bad" if window.other_processes else "dim"),
    ),
    _telemetry(Number("hot/memory C", if_known=True, drop=8), lambda window: heat_words(window)),
    _telemetry(Number("W", if_known=True, drop=9), lambda window: _whole(window.power_w)),
    Field(
        Number("peak memory", if_known=True, drop=10),
        lambda timing: memory_words(timing.candidate.peak_bytes if timing.candidate is not None else None),
    ),
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
    plain = [None if side is None else side.plain_ms for side in (timing.candidate, timing.baseline)]
    if _contradicts(timing.outcome, *plain):
        candidate, baseline = (f"{us_words(ms)} us" for ms in plain)
        lines.append(
            f"{timing.case}: calls back to back, with host time and hot caches: {candidate}, the baseline {baseline}; "
            f"the outcome is of device time{' and cold caches' if timing.cache == 'cold' else ''}"
        )
    if timing.configs:
        chosen = "; ".join(f"{name} {config}" for name, config in timing.configs.items())
        lines.append(f"{timing.case}: timed with {chosen}")
    return lines + [f"{timing.case}: {note}" for note in timing.notes]


def _contradicts(outcome: Outcome, candidate_ms: float | None, baseline_ms: float | None) -> bool:
    """True if these times say the opposite of the outcome, by more than 5 %."""
    if candidate_ms is None or baseline_ms is None:
        return False
    slow, fast = (candidate_ms, baseline_ms) if outcome is Outcome.FASTER else (baseline_ms, candidate_ms)
    return outcome in (Outcome.FASTER, Outcome.SLOWER) and slow > 1.05 * fast


def sustained_words(timing: Latency) -> str:
    """Return the sustained times of candidate and baseline, `12.1 / 15.3`; empty if both are unknown."""
    times = [None if side is None else side.sustained_ms for side in (timing.candidate, timing.baseline)]
    return " / ".join(map(us_words, times)) if any(times) else ""


def clock_words(window: Window) -> str:
    """Return the lowest clock in MHz, and the usual clock if it differs: `1755 of 1980`; empty if unknown."""
    usual = window.clock_usual_mhz
    if window.clock_mhz is None:
        return ""
    return f"{window.clock_mhz}{f' of {usual}' if usual and usual != window.clock_mhz else ''}"


def throttle_words(window: Window) -> str:
    """Return the causes of throttling, `power cap 12%`, or `+3` for a counter without a share; empty if there are none."""
    return ", ".join(
        f"{name} {share:.0%}" if share <= 1 else f"{name} +{share:.0f}"
        for name, share in sorted(window.throttled.items(), key=lambda cause: -cause[1])
    )


def state_words(state: DeviceReading) -> str:
    """Return the known facts about a device before or after timing, on one line."""
    facts = (
        "" if state.clock_mhz is None else f"{state.clock_mhz} MHz",
        "" if state.busy_percent is None else f"{state.busy_percent:.0f} % busy",
        "" if state.memory_used_bytes is None else f"{memory_words(state.memory_used_bytes)} in use",
        "" if state.hotspot_c is None else f"{state.hotspot_c:.0f} C",
        "" if state.other_processes is None else f"{state.other_processes} other processes",
    )
    return ", ".join(filter(None, facts))
