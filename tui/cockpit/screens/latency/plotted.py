"""The plots of the Latency screen, from an attempt's times."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Outcome, Verdict
from sessions.state.cases import NOT_TIMED, CaseRow
from sessions.state.state import AttemptState, InstanceState
from tui.cockpit.draw import plots
from tui.cockpit.draw.lines import EMPTY, Line, Span, cells, clean, line, shorten, wrap_line
from tui.facts.vocabulary import NOT_MEASURED, letter, speed_style, words

from .time_table import THROTTLED
from .timings import Timings, gpu_name, is_throttled

PLOTS = (
    ("roof", "share of the roof"),
    ("attempts", "speedup by attempt"),
    ("gpus", "time by GPU"),
)
"""Names and titles, in the order of their digits."""
THIS = "#"
"""Mark of the attempt on screen."""


def plot_lines(
    name: str,
    timings: Timings,
    instance: InstanceState,
    case: CaseRow,
    width: int,
    height: int,
    *,
    ascii: bool,
) -> list[Line]:
    """Return title and lines of a plot; `case` is the case under the cursor."""
    match name:
        case "roof":
            title = f"Share of the practical roof   o baseline   {THIS} this attempt"
            lines = roof_plot(timings, width, ascii=ascii)
        case "attempts":
            title = f"Speedup by attempt, 95 % intervals   {THIS} this attempt"
            lines = attempts_plot(instance, timings.attempt, width, max(height - 3, 6), ascii=ascii)
        case _:
            base = "" if case.latency is None else f"   baseline {case.baseline} us"
            title = f"Time by GPU, case {timings.letter(case)} {clean(case.case)}{base}"
            lines = gpus_plot(timings, case.case, width, ascii=ascii)
    return [line(shorten(title, width), "head"), *lines]


def side_by_side(first: Sequence[Line], second: Sequence[Line], width: int, height: int) -> list[Line]:
    """Return two blocks of `height` rows beside each other; the second begins after `width` cells."""
    rows: list[Line] = []
    for place in range(height):
        row = wrap_line(first[place], width - 1)[0] if place < len(first) else EMPTY
        addition = second[place] if place < len(second) else EMPTY
        rows.append((*row, Span(" " * max(1, width - cells(row))), *addition) if addition else row)
    return rows


def roof_plot(timings: Timings, width: int, *, ascii: bool) -> list[Line]:
    """Return a bar a case: both sides' shares of the practical roof that limits the attempt."""
    bars = []
    for own in timings.cases:
        name = timings.letter(own)
        if own.roof is None or not own.baseline.ms:
            bars.append(plots.ShareBar(name, None, None, words=_no_share(own)))
            continue
        of_candidate = own.roof.share * (own.candidate.ms or 0.0)
        baseline = None if own.baseline.is_hidden else of_candidate / own.baseline.ms
        style = "good" if own.outcome is Outcome.FASTER else ""
        bars.append(plots.ShareBar(name, baseline, own.roof.share, style))
    return plots.share_bars(bars, width, ascii=ascii)


def _no_share(own: CaseRow) -> str:
    if own.latency is None:
        return own.reason
    if own.limit == "launch":
        return "launch: too short for a share"
    return "suspect: faster than the device can be" if own.suspect else "the roof was not measured"


def attempts_plot(
    instance: InstanceState, chosen: AttemptState, width: int, most: int, *, ascii: bool
) -> list[Line]:
    """Return the speedup of each attempt with its interval, else its verdict; of more than `most` those around `chosen`."""
    attempts = instance.attempts
    first = max(min(attempts.index(chosen) - most // 2, len(attempts) - most), 0)
    rows = []
    for attempt in attempts[first : first + most]:
        mark = THIS if attempt is chosen else " "
        label = f"{mark} {attempt.number} {letter(attempt.verdict)}"
        speed = attempt.speed
        if speed is None:
            verdict = words(attempt.verdict) if attempt.verdict is not None else "no verdict yet"
            no_speed = NOT_MEASURED if attempt.verdict is Verdict.CORRECT else verdict
            rows.append(plots.Interval(label, words=no_speed, style="dim"))
            continue
        low, high = speed.interval or (None, None)
        rows.append(plots.Interval(label, speed.value, low, high, speed.figure, speed_style(speed)))
    return plots.interval_rows(
        rows,
        width,
        ascii=ascii,
        axis="speedup (dotted: 1.00x)",
        label=lambda value: f"{value:.3g}",
        reference=1.0,
    )


def gpus_plot(timings: Timings, case: str, width: int, *, ascii: bool) -> list[Line]:
    """Return the medians of a case with p10 and p90 on each GPU."""
    rows = []
    for device in timings.devices:
        timed = timings.by_place.get((device, case))
        if timed is not None:
            rows.append(_time(gpu_name(device), timed))
            continue
        reason = timings.reasons.get(device)
        words = clean(reason.words) if reason is not None else NOT_TIMED
        rows.append(plots.Interval(gpu_name(device), words=words))
    return plots.interval_rows(
        rows, width, ascii=ascii, axis="us, median and p10 to p90", label=lambda value: f"{value:g}"
    )


def _time(label: str, timed: CaseRow) -> plots.Interval:
    if timed.candidate.is_hidden or timed.candidate.ms is None:
        return plots.Interval(label, words=f"{timed.candidate} us: the launch hides it")
    side = timed.candidate.timed
    throttled = is_throttled(timed)
    low, high = (None, None) if side is None else (side.p10_ms * 1e3, side.p90_ms * 1e3)
    words = f"{timed.candidate}{THROTTLED if throttled else ''}"
    return plots.Interval(label, timed.candidate.ms * 1e3, low, high, words, "dim" if throttled else "")
