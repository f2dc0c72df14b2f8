"""Rows and lines of the Report screen. Pure functions: the same report gives the same rows, live and in replay."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.names import short_task
from sessions.state.state import Confirmation
from tui.cockpit.lines import EMPTY, Line, Span, cells, clean, joined, line, shorten, wrap
from tui.cockpit.standing import speed_style
from tui.report.bars import Glyphs, axis, bars_of
from tui.report.merging import ranked_winners
from tui.report.model import SessionReport, Winner
from tui.report.phrases import (
    cases_words,
    exam_words,
    figure_words,
    interval_words,
    marks,
    origin_words,
    roof_range_words,
    short_commit,
    speed_words,
)
from tui.tables import Cell, Column, Row
from tui.vocabulary import (
    NO_GPU,
    UNKNOWN,
    counted,
    duration,
    money,
    percent,
)

WINNER_COLUMNS = (
    Column("task", 8, 26),
    Column("speedup", 9, 10, right=True),
    Column("95 %", 12, 14, right=True, drop=3, if_known=True),
    Column("", 3, 3),
    Column("cases", 6, 6, right=True, drop=5, if_known=True),
    Column("roof", 7, 8, right=True, drop=4, if_known=True),
    Column("exam", 12, 12),
    Column("by", 6, 24),
    Column("origin", 8, 18, drop=6),
    Column("against", 7, 12, drop=7, if_known=True),
    Column("device", 6, 16, drop=8, if_known=True),
    Column("strategy", 20, 60, drop=9, if_known=True),
)
MERGED_COLUMNS = (
    Column("task", 8, 26),
    Column("speedup", 9, 10, right=True),
    Column("95 %", 12, 14, right=True, drop=2, if_known=True),
    Column("", 3, 3),
    Column("cases", 6, 6, right=True, drop=4, if_known=True),
    Column("exam", 12, 12, drop=1),
    Column("against", 7, 12, drop=3, if_known=True),
    Column("device", 6, 16, drop=5, if_known=True),
    Column("by", 6, 24, drop=6),
    Column("session", 25, 34),
)
DIM = "dim"
EXAM_STYLES = {
    Confirmation.CONFIRMED: "",
    Confirmation.NOT_CONFIRMED: "bad",
    Confirmation.NOT_EXAMINED: DIM,
}
LEAST_BAR_CELLS = 16
MOST_BAR_CELLS = 60


def summary_line(report: SessionReport, width: int) -> Line:
    """Return what the session reached, in one line; device time and money go first if it does not fit."""
    summary = report.summary
    confirmed = "" if summary.confirmed is None else f", {summary.confirmed} confirmed"
    speed = {"no GPU": NO_GPU, "measured": f"against {summary.against or 'the baseline'}"}
    share = "" if summary.tally.share_correct is None else f", {percent(summary.tally.share_correct)} correct"
    parts = [
        line(f"{summary.solved} of {summary.tasks} solved{confirmed}", "bold"),
        line(clean(speed.get(summary.timing, summary.timing))),
        line(f"{counted(summary.tally.judged, 'attempt')}{share}"),
        line(money(summary.cost_usd)) if summary.cost_usd is not None else EMPTY,
        line(f"{duration(summary.device_s)} on devices", DIM) if summary.device_s else EMPTY,
    ]
    while len(parts) > 1 and cells(joined(parts)) > width:
        parts.pop()
    return joined(parts)


def no_winner_words(report: SessionReport) -> str:
    """Return what the table of winners says while it is empty."""
    if not report.summary.tally.judged:
        return "No attempt was judged yet."
    closest = [
        f"{clean(task.closest or short_task(task.task))}  {clean(task.why)}"
        for task in report.unsolved
        if task.closest
    ]
    return "\n".join(["No task is solved yet. The closest attempts:", *closest])


def winner_rows(report: SessionReport) -> list[Row]:
    """Return a row for each winner, the fastest first, then one for each task without a winner."""
    rows = [Row(winner.attempt, _winner_cells(winner)) for winner in report.winners]
    if not rows:
        return []
    for task in report.unsolved:
        cells = [Cell("")] * len(WINNER_COLUMNS)
        cells[0] = Cell(clean(short_task(task.task)), DIM)
        cells[1] = Cell(UNKNOWN, DIM)
        cells[6] = Cell("not solved", DIM)
        cells[7] = Cell(_short_attempt(task.closest), DIM)
        cells[11] = Cell(line(task.why)[0].text if task.why else "", DIM)
        rows.append(Row(f"task:{task.task}", tuple(cells)))
    return rows


def _winner_cells(winner: Winner) -> tuple[Cell, ...]:
    style = speed_style(winner.speed)
    return (
        Cell(clean(short_task(winner.task))),
        Cell(figure_words(winner.speed), style),
        Cell(interval_words(winner.speed), style),
        Cell(marks(winner), "warn" if winner.waiting or winner.findings else ""),
        Cell(cases_words(winner.speed).replace(" of ", "/"), DIM),
        Cell(roof_range_words(winner.roof)),
        Cell(exam_words(winner), EXAM_STYLES[winner.confirmed]),
        Cell(_short_attempt(winner.attempt)),
        Cell(origin_words(winner.origin, winner.base and _short_attempt(winner.base)), DIM),
        Cell(clean(winner.against) or UNKNOWN, DIM),
        Cell(clean(winner.device) or UNKNOWN, DIM),
        Cell(clean(winner.strategy) or UNKNOWN),
    )


def merged_rows(reports: Sequence[SessionReport]) -> list[Row]:
    """Return the winners of several sessions, by task, the fastest first."""
    rows = []
    for report, winner in ranked_winners(reports):
        style = speed_style(winner.speed)
        cells = (
            Cell(clean(short_task(winner.task))),
            Cell(figure_words(winner.speed), style),
            Cell(interval_words(winner.speed), style),
            Cell(marks(winner), "warn" if winner.waiting or winner.findings else ""),
            Cell(cases_words(winner.speed).replace(" of ", "/"), DIM),
            Cell(exam_words(winner), EXAM_STYLES[winner.confirmed]),
            Cell(clean(winner.against) or UNKNOWN, DIM),
            Cell(clean(winner.device) or UNKNOWN, DIM),
            Cell(_short_attempt(winner.attempt)),
            Cell(clean(report.summary.session), "key"),
        )
        rows.append(Row(f"{report.summary.session}|{winner.attempt}", cells))
    return rows


def _short_attempt(attempt: str) -> str:
    """Return `#3/7`, for rows that name the task."""
    task, mark, number = attempt.rpartition("#")
    return f"{mark}{number}" if task else attempt


def bar_lines(report: SessionReport, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a bar for each winner with a speedup, with the scale below; empty if nothing was timed."""
    names = min(26, max((len(short_task(winner.task)) for winner in report.winners), default=0))
    figures = max((len(speed_words(winner.speed)) for winner in report.winners), default=0)
    cells = min(MOST_BAR_CELLS, width - names - 2)
    beside = cells - figures - 2 >= LEAST_BAR_CELLS
    cells = min(MOST_BAR_CELLS, width - names - figures - 4) if beside else cells
    bars = bars_of(report.winners, cells, glyphs)
    if not bars:
        return []
    styles = {winner.task: speed_style(winner.speed) for winner in report.winners}
    lines: list[Line] = []
    for bar in bars:
        figure = Span(f"  {bar.figure}", styles[bar.task]) if beside else Span("")
        name = shorten(clean(bar.name), names)
        lines.append((Span(f"{name:<{names}}  "), Span(bar.drawing, styles[bar.task]), figure))
    return [*lines, line(f"{'':<{names}}  {axis(report.winners, cells)}".rstrip(), DIM)]


def winner_lines(report: SessionReport, attempt: str | None, width: int) -> list[Line]:
    """Return why one winner is fast, and where its kernel lies."""
    winner = next((winner for winner in report.winners if winner.attempt == attempt), None)
    if winner is None:
        return []
    before = winner.before_exam
    first = "" if before is None else f"{before.figure} before the exam timed it again"
    facts = [
        ("speedup", winner.no_speed or "; ".join(filter(None, (speed_words(winner.speed), first)))),
        ("on each GPU", winner.by_gpu),
        (
            "roof",
            roof_range_words(winner.roof).replace(UNKNOWN, "")
            and f"{roof_range_words(winner.roof)} of the practical roof",
        ),
        ("findings", winner.findings),
        ("strategy", winner.strategy),
        (
            "commit",
            f"{short_commit(winner.commit)} on {winner.branch}" if winner.commit else "not in the store yet",
        ),
        ("accepted as", f"{winner.accepted_file} on the branch accepted" if winner.accepted_file else ""),
        ("accepted", f"{winner.accepted_instead} instead" if winner.accepted_instead else ""),
    ]
    lines: list[Line] = [
        (Span(clean(winner.attempt), "bold"), Span(f"  {origin_words(winner.origin, winner.base)}", DIM))
    ]
    for name, value in facts:
        pieces = wrap(clean(value), max(width - 13, 20)) if value else []
        for number, piece in enumerate(pieces):
            lines.append((Span(f"{name if number == 0 else '':<13}", DIM), Span(piece)))
    return [*lines, *_estimate_lines(report, winner)]


def _estimate_lines(report: SessionReport, winner: Winner) -> list[Line]:
    """Return the bounds of each case of a winner without a time."""
    estimates = [case for case in report.estimates if case.attempt == winner.attempt]
    if not estimates:
        return []
    names = min(24, max(len(case.case) for case in estimates))
    title = f"Estimate for {clean(estimates[0].target)}, not measured: from the roofline to no use of caches"
    return [
        EMPTY,
        line(title, DIM),
        *(
            line(
                f"  {case.case:<{names}}  {case.low_us:,.4g} to {case.high_us:,.4g} us, limit {case.limit}",
                DIM,
            )
            for case in estimates
        ),
    ]
