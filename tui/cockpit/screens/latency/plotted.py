"""The plots of the Latency screen, from an attempt's times."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from harness import Verdict
from sessions.names import short_task, split_attempt
from sessions.state.cases import CaseRow
from sessions.state.state import AttemptState, InstanceState, SessionState
from sessions.state.winners import best_of
from tui.cockpit.draw import plots
from tui.cockpit.draw.lines import EMPTY, Line, Span, cells, line, shorten, wrap_line
from tui.facts.evaluation.times import case_style
from tui.facts.vocabulary import NOT_MEASURED, clock, decision_mark, letter, speed_style, words

from .timings import Timings

PLOTS = (
    ("roof", "share of the roof"),
    ("attempts", "speedup by attempt"),
    ("best", "best over time"),
)
"""Names and titles, in the order of their digits."""
BEST_ROWS = 12
"""Most rows of the best over time."""
THIS = "#"
"""Mark of the attempt on screen."""


def plot_lines(name: str, state: SessionState, timings: Timings, width: int, height: int) -> list[Line]:
    """Return title and lines of a plot."""
    instance = state.instances[split_attempt(timings.attempt.attempt).instance]
    match name:
        case "roof":
            title = f"Share of the practical roof   o baseline   {THIS} this attempt"
            lines = roof_plot(timings, width)
        case "attempts":
            title = f"Speedup by attempt, 95 % intervals   {THIS} this attempt"
            lines = attempts_plot(instance, timings.attempt, width, max(height - 3, 6))
        case _:
            title = f"Best speedup of {short_task(instance.task)} over time   · another attempt"
            lines = best_plot(state, instance.task, width, min(height, BEST_ROWS) - 2)
    return [line(shorten(title, width), "head"), *lines]


def side_by_side(blocks: Sequence[Sequence[Line]], width: int, height: int) -> list[Line]:
    """Return one or two blocks of at most `height` lines beside each other; the second begins after `width` cells."""
    first, second = blocks[0], blocks[1] if len(blocks) > 1 else ()
    rows: list[Line] = []
    for own, beside in zip_longest(first[:height], second[:height], fillvalue=EMPTY):
        row = wrap_line(own, width - 1)[0]
        rows.append((*row, Span(" " * max(1, width - cells(row))), *beside) if beside else row)
    return rows


def roof_plot(timings: Timings, width: int) -> list[Line]:
    """Return a bar a case: both sides' shares of the practical roof that limits the attempt."""
    bars = []
    for own in timings.cases:
        name = timings.letter(own)
        if own.roof is None or not own.baseline.ms:
            bars.append(plots.ShareBar(name, None, None, words=_no_share(own)))
            continue
        of_candidate = own.roof.share * (own.candidate.ms or 0.0)
        baseline = None if own.baseline.is_hidden else of_candidate / own.baseline.ms
        bars.append(plots.ShareBar(name, baseline, own.roof.share, case_style(own)))
    return plots.share_bars(bars, width)


def _no_share(own: CaseRow) -> str:
    if own.latency is None:
        return own.reason
    if own.limit == "launch":
        return "launch: too short for a share"
    return "suspect: faster than the device can be" if own.suspect else "the roof was not measured"


def attempts_plot(instance: InstanceState, chosen: AttemptState, width: int, most: int) -> list[Line]:
    """Return the speedup of each attempt with its interval, else its verdict; of more than `most` those around `chosen`."""
    attempts = instance.attempts
    first = max(min(attempts.index(chosen) - most // 2, len(attempts) - most), 0)
    rows = []
    for attempt in attempts[first : first + most]:
        mark = THIS if attempt is chosen else " "
        label = f"{mark} {attempt.number} {letter(attempt.verdict)}{decision_mark(attempt)}"
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
        axis="speedup (dotted: 1.00x)",
        label=lambda value: f"{value:.3g}",
        reference=1.0,
    )


def best_plot(state: SessionState, task: str, width: int, height: int) -> list[Line]:
    """Return the best speedup of a task (full name) over the time in which an engine worked, as far as it is known now."""
    chains = [instance.attempts for instance in state.instances.values() if instance.task == task]
    timed = [attempt for attempt in chain.from_iterable(chains) if attempt.speed is not None]
    timed.sort(key=lambda attempt: attempt.judged_worked_s)
    moments = [
        plots.Moment(
            attempt.judged_worked_s / (state.worked_s or 1.0),
            speed.value,
            f"#{attempt.attempt.rpartition('#')[2]} {speed.figure}",
            speed_style(speed),
            best_of(timed[: place + 1]) is attempt,
        )
        for place, attempt in enumerate(timed)
        if (speed := attempt.speed) is not None
    ]
    if not any(moment.is_best for moment in moments):
        return [line(NOT_MEASURED, "dim")]
    axis = f"0:00 to {clock(state.worked_s)} of work; the scale is not from 0"
    return [*plots.best_line(moments, width, max(height, 3)), line(shorten(f"       {axis}", width), "dim")]
