"""All figures on the performance of a correct candidate, in words and in rows by case, as prompts show them.

Times are measured. Bytes are those that the interpreter counted at `cpu` sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness import Evaluation
from harness.wire.results.latency import Bound, Outcome
from harness.wire.results.roofs import is_launch_bound, is_shorter_than_launch, room
from sessions.state.cases import CaseRow, case_rows
from sessions.state.figure_words import ratio_words, us_words
from sessions.state.ranking import EXCESS_TIE, improvable, traffic_excess
from sessions.state.speed import are_comparable, speed_of

from .standouts import resource_legend, resource_lines, standouts

RESOURCE_LINES = 12
SLOWER = 0.98
"""A case's clock is named below this share of the highest: smaller differences change no conclusion."""
ROOFS = {
    ("memory", False): "of a copy",
    ("memory", True): "of peak bandwidth",
    ("compute", False): "of a product",
    ("compute", True): "of peak FLOP/s",
}
"""Words for a limit, and whether the vendor's peak counts because no roof was measured."""


@dataclass(frozen=True, slots=True)
class TimedRow:
    """One timed case of a candidate."""

    case: str
    time_us: float
    speedup: str
    """Ratio to the baseline with its 95 % interval, or why there is none."""
    roof: str
    """Distance to the limit, as by `roof_words`; empty if unknown."""


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """The memory traffic of one case of a candidate that was not timed, at its `cpu` sizes."""

    case: str
    requested_mb: float
    excess: float | None
    """Requested over needed bytes, at least 1; `None` if the needed bytes are unknown."""
    launches: int


def own_cases(evaluation: Evaluation) -> list[CaseRow]:
    """Returns the timed cases of the evaluation's own device."""
    return [
        row for row in case_rows(evaluation) if row.device == evaluation.device and row.latency is not None
    ]


def timed_rows(evaluation: Evaluation) -> tuple[TimedRow, ...]:
    """Returns the timed cases of the evaluation's own device that have a ratio to the baseline."""
    return tuple(
        TimedRow(row.case, rounded((row.candidate.ms or 0.0) * 1e3), speedup_words(row), roof_words(row))
        for row in own_cases(evaluation)
        if row.speedup is not None
    )


def too_short_words(evaluation: Evaluation) -> list[str]:
    """Returns the timed cases without a ratio, with both times: `thin (1.21 us, baseline 1.56 us)`.

    A timed case lacks a ratio only if both sides are too short.
    """
    return [
        f"{row.case} ({us_words(row.candidate.ms)} us, baseline {us_words(row.baseline.ms)} us)"
        for row in own_cases(evaluation)
        if row.speedup is None
    ]


def speedup_words(row: CaseRow) -> str:
    """Returns the speedup of a case: `1.29x [1.27, 1.31]`, or `>= 37.00x` and why it is a bound."""
    if row.sign:
        side = "" if row.sign == Bound.AT_LEAST.sign else "the baseline is "
        return f"{row.words} ({side}too short for an exact ratio)"
    return f"{row.words}{', not resolved' if row.interval and row.outcome is Outcome.NOT_RESOLVED else ''}"


def roof_words(row: CaseRow) -> str:
    """Returns how far a case is from its limit: `92% of a copy`, `61% of a product`, or `3.75x an empty kernel`.

    A product that was not measured, as of int8, counts by the vendor's peak. An empty kernel is the limit of a case that would
    take less time than a launch at its roof.
    """
    timed, reached = row.latency, row.roof or row.peak
    if timed is not None and timed.floor_ms and (is_launch_bound(timed) or is_shorter_than_launch(timed)):
        return f"{ratio_words(timed.candidate_ms / timed.floor_ms)} an empty kernel"
    if reached is None:
        return ""
    is_of_peak = row.roof is None or reached.is_of_peak
    return f"{reached.share:.0%} {ROOFS[reached.limit, is_of_peak]}"


def without_room(evaluation: Evaluation) -> tuple[str, ...]:
    """Returns the timed cases that are at their roof, or as short as an empty kernel."""
    return tuple(row.case for row in own_cases(evaluation) if row.latency and room(row.latency) == 1.0)


def rounded(value: float) -> float:
    """Returns a value with four significant digits, as prompts show it."""
    return float(f"{value:.4g}")


def device_words(evaluation: Evaluation) -> str:
    """Returns the device's state during timing: `at 1980 MHz (square 1800) and 412 W`; empty if unknown.

    Clocks are those of the samples that count. What held the clock back is named if a case ran at a lower one.
    """
    window = evaluation.latency[0].window if evaluation.latency else None
    clocks = {
        latency.case: latency.candidate.clock_mhz
        for latency in evaluation.latency
        if latency.candidate is not None and latency.candidate.clock_mhz is not None
    }
    usual = max(clocks.values(), default=None if window is None else window.clock_mhz)
    if window is None or usual is None:
        return ""
    lower = ", ".join(f"{case} {clock}" for case, clock in clocks.items() if clock < SLOWER * usual)
    power = "" if window.power_w is None else f" and {window.power_w:.0f} W"
    reasons = f"; held back by: {', '.join(window.throttled)}" if lower and window.throttled else ""
    return f"at {usual} MHz{f' ({lower})' if lower else ''}{power}{reasons}"


def traffic_rows(evaluation: Evaluation) -> tuple[TrafficRow, ...]:
    """Returns the memory traffic that the interpreter counted, by case."""
    return tuple(
        TrafficRow(row.case, row.requested_bytes / 1e6, row.excess, row.launches)
        for row in evaluation.traffic
    )


def is_at_bound(evaluation: Evaluation) -> bool:
    """True if requested bytes were counted, and tie with the needed bytes in every case where these are known."""
    ratios = [row.excess for row in evaluation.traffic if row.excess is not None]
    return bool(ratios) and max(ratios) <= 1 + EXCESS_TIE


def achieved(evaluation: Evaluation) -> str:
    """Returns the speed of a correct kernel in one line: measured figures if it was timed, else counts."""
    speed = speed_of(evaluation)
    if speed is not None:
        alone = f" (cases with an exact ratio alone: {speed.exact_words})" if speed.exact is not None else ""
        return f"{speed} the baseline by {speed.mean}{alone}"
    parts = ["no case has a ratio to the baseline"] if evaluation.latency else []
    excess = traffic_excess(evaluation)
    if excess is not None:
        worst = max(row.excess or 0.0 for row in evaluation.traffic)
        parts.append(f"requests {excess:.2f} times the needed bytes ({worst:.2f} in its worst case)")
    spilled = sum(
        count or 0
        for kernels in evaluation.resources.values()
        for kernel in kernels
        for count in (kernel.vgpr_spills, kernel.sgpr_spills, kernel.spill_bytes)
    )
    if evaluation.resources:
        parts.append("spills registers" if spilled else "no spills")
    return "; ".join(parts) or "correct; nothing is known of its speed"


def achieved_beside(evaluation: Evaluation, best: Evaluation | None) -> str:
    """Returns `achieved`, or that the figures are left out because the prompt has those of `best` from another provenance."""
    if are_comparable(evaluation, best):
        return achieved(evaluation)
    return "correct; its figures are left out, because they come from other hardware or software"


@dataclass(frozen=True, slots=True)
class Measurements:
    """All figures on the performance of one correct candidate."""

    summary: str
    """One line."""
    timed: Sequence[TimedRow]
    """Empty if no case has a ratio."""
    too_short: Sequence[str]
    """Timed cases without a ratio, with both times."""
    device_state: str
    """Clock and power during timing; empty if unknown."""
    traffic: Sequence[TrafficRow]
    """The bytes of each case; empty if the candidate was timed."""
    is_at_bound: bool
    """True if no kernel requests fewer bytes, so that only other figures can rank a kernel higher."""
    improvable: Sequence[str]
    """The figures by which another kernel can rank higher; empty if the candidate was timed."""
    without_room: Sequence[str]
    """Timed cases with nothing left to gain (`without_room`)."""
    resources: Sequence[str]
    """One line per group of binaries with equal figures."""
    resource_legend: str
    """The meaning of these figures; empty without binaries."""
    compile_errors: dict[str, str]
    """Why it does not compile, by target other than the first."""
    standouts: Sequence[str]
    """The figures that are worth acting on, one sentence each."""


def measurements(evaluation: Evaluation) -> Measurements:
    """Returns the figures on a correct candidate's performance."""
    timed, too_short = timed_rows(evaluation), too_short_words(evaluation)
    return Measurements(
        summary=achieved(evaluation),
        timed=timed,
        too_short=too_short,
        device_state=device_words(evaluation),
        traffic=() if timed or too_short else traffic_rows(evaluation),
        is_at_bound=not (timed or too_short) and is_at_bound(evaluation),
        improvable=() if timed or too_short else improvable(evaluation),
        without_room=without_room(evaluation),
        resources=resource_lines(evaluation, RESOURCE_LINES),
        resource_legend=resource_legend(evaluation),
        compile_errors=evaluation.compile_errors,
        standouts=standouts(evaluation),
    )
