"""Rows and lines of the Report screen. Pure functions: the same report gives the same rows, live and in replay."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.names import short_task
from sessions.state import Confirmation
from tui.cockpit.grid import Cell, Column, Row
from tui.cockpit.lines import EMPTY, Line, Span, cells, clean, joined, line, shorten, wrap
from tui.cockpit.standing import verdict_style
from tui.report.bars import Glyphs, axis, bars_of
from tui.report.metric_sections import metrics_of
from tui.report.model import CaseTime, Change, SessionReport, Winner
from tui.report.phrases import (
    case_ratio,
    case_time,
    cases_words,
    change_words,
    covered_words,
    exam_words,
    gain_words,
    interval_words,
    marks,
    origin_words,
    ratio_words,
    roof_range_words,
    roof_words,
    short_commit,
    speedup_words,
)
from tui.report.speedups import Speedup
from tui.vocabulary import (
    NO_GPU,
    UNKNOWN,
    counted,
    duration,
    estimate,
    grouped,
    interval,
    letter,
    money,
    percent,
    times,
    words,
)

WINNER_COLUMNS = (
    Column("task", 8, 26),
    Column("speedup", 9, 10, right=True),
    Column("95 %", 12, 14, right=True, drop=3, if_known=True),
    Column("", 2, 2),
    Column("cases", 6, 6, right=True, drop=5, if_known=True),
    Column("roof", 7, 8, right=True, drop=4, if_known=True),
    Column("exam", 12, 12),
    Column("by", 6, 24),
    Column("origin", 8, 18, drop=6),
    Column("against", 7, 12, drop=7, if_known=True),
    Column("device", 6, 16, drop=8, if_known=True),
    Column("strategy", 20, 60, drop=9, if_known=True),
)
CASE_COLUMNS = (
    Column("task", 8, 26),
    Column("case", 7, 24),
    Column("sizes", 12, 30, drop=8, if_known=True),
    Column("GPU", 3, 6, drop=6),
    Column("base us", 7, 9, right=True, drop=3),
    Column("this us", 7, 9, right=True, drop=2),
    Column("speedup", 9, 10, right=True),
    Column("95 %", 12, 14, right=True, drop=1, if_known=True),
    Column("outcome", 12, 12, drop=5),
    Column("roof", 11, 13, right=True, drop=4, if_known=True),
    Column("cache", 5, 5, drop=7, if_known=True),
    Column("remark", 24, 40, drop=9, if_known=True),
)
CHANGE_COLUMNS = (
    Column("attempt", 10, 26),
    Column("", 1, 1),
    Column("verdict", 2, 15),
    Column("origin", 15, 18, drop=4),
    Column("speedup", 9, 10, right=True, if_known=True),
    Column("95 %", 12, 14, right=True, drop=3, if_known=True),
    Column("to base", 7, 7, right=True, drop=2, if_known=True),
    Column("estimate", 18, 20, right=True, drop=1, if_known=True),
    Column("lines", 6, 11, right=True, drop=5, if_known=True),
    Column("strategy, or error", 20, 90, drop=6),
)
VERDICT_COLUMNS = (
    Column("", 1, 1),
    Column("verdict", 8, 14),
    Column("error", 8, 24),
    Column("attempts", 8, 8, right=True),
    Column("share", 5, 6, right=True),
    Column("newest", 8, 26),
    Column("its message", 16, 100, drop=1, if_known=True),
)
COST_COLUMNS = (
    Column("task", 8, 30),
    Column("solved", 6, 6),
    Column("attempts", 8, 8, right=True),
    Column("to first correct", 16, 16, right=True, drop=1, if_known=True),
    Column("cost", 7, 9, right=True, if_known=True),
    Column("tokens in", 9, 12, right=True, drop=2, if_known=True),
    Column("out", 7, 12, right=True, drop=3, if_known=True),
    Column("on devices", 10, 12, right=True, drop=4, if_known=True),
)
METRIC_COLUMNS = (
    Column("metric", 18, 26),
    Column("value", 6, 8, right=True),
    Column("counts", 44, 60),
    Column("source", 13, 26, drop=1),
)
DIM = "dim"
STAGE_CELLS = 12
LEAST_BAR_CELLS = 16
MOST_BAR_CELLS = 60


def summary_line(report: SessionReport, width: int) -> Line:
    """Return what the session reached, in one line; device time and money go first if it does not fit."""
    summary = report.summary
    confirmed = "" if summary.confirmed is None else f", {summary.confirmed} confirmed"
    speed = {"no GPU": NO_GPU, "measured": f"against {summary.against or 'the baseline'}"}
    share = "" if summary.share_correct is None else f", {percent(summary.share_correct)} correct"
    parts = [
        line(f"{summary.solved} of {summary.tasks} solved{confirmed}", "bold"),
        line(clean(speed.get(summary.timing, summary.timing))),
        line(f"{counted(summary.judged, 'attempt')}{share}"),
        line(money(summary.cost_usd)) if summary.cost_usd is not None else EMPTY,
        line(f"{duration(summary.device_s)} on devices", DIM) if summary.device_s else EMPTY,
    ]
    while len(parts) > 1 and cells(joined(parts)) > width:
        parts.pop()
    return joined(parts)


def no_winner_words(report: SessionReport) -> str:
    """Return what the table of winners says while it is empty."""
    if not report.summary.judged:
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
    style = speedup_style(winner.speedup)
    exam = {Confirmation.CONFIRMED: "", Confirmation.NOT_CONFIRMED: "bad"}.get(winner.confirmed, DIM)
    return (
        Cell(clean(short_task(winner.task))),
        Cell(ratio_words(winner.speedup), style),
        Cell(interval_words(winner.speedup), style),
        Cell(marks(winner), "warn" if winner.waiting else ""),
        Cell(cases_words(winner.speedup).replace(" of ", "/"), DIM),
        Cell(roof_range_words(winner.roof)),
        Cell(exam_words(winner), exam),
        Cell(_short_attempt(winner.attempt)),
        Cell(origin_words(winner.origin, winner.base and _short_attempt(winner.base)), DIM),
        Cell(clean(winner.against) or UNKNOWN, DIM),
        Cell(clean(winner.device) or UNKNOWN, DIM),
        Cell(clean(winner.strategy) or UNKNOWN),
    )


def speedup_style(speedup: Speedup | None) -> str:
    """Return green only for a speedup whose cases are all faster with an interval above 1."""
    if speedup is None:
        return DIM
    return "good" if speedup.is_faster else "bad" if speedup.is_slower else ""


def _short_attempt(attempt: str) -> str:
    """Return `#3/7`, for rows that name the task."""
    task, mark, number = attempt.rpartition("#")
    return f"{mark}{number}" if task else attempt


def bar_lines(report: SessionReport, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a bar for each winner with a speedup, with the scale below; empty if nothing was timed."""
    names = min(26, max((len(short_task(winner.task)) for winner in report.winners), default=0))
    figures = max((len(speedup_words(winner.speedup)) for winner in report.winners), default=0)
    cells = min(MOST_BAR_CELLS, width - names - 2)
    beside = cells - figures - 2 >= LEAST_BAR_CELLS
    cells = min(MOST_BAR_CELLS, width - names - figures - 4) if beside else cells
    bars = bars_of(report.winners, cells, glyphs)
    if not bars:
        return []
    styles = {winner.task: speedup_style(winner.speedup) for winner in report.winners}
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
    found = "" if winner.found is None else f"found {times(winner.found)} before the exam timed it again"
    facts = [
        ("speedup", winner.no_speedup or "; ".join(filter(None, (covered_words(winner.speedup), found)))),
        ("on each GPU", winner.by_gpu),
        (
            "roof",
            roof_range_words(winner.roof).replace(UNKNOWN, "")
            and f"{roof_range_words(winner.roof)} of the practical roof",
        ),
        ("strategy", winner.strategy),
        (
            "commit",
            f"{short_commit(winner.commit)} on {winner.branch}" if winner.commit else "not in the store yet",
        ),
        ("accepted as", f"{winner.accepted_file} on the branch accepted" if winner.accepted else ""),
    ]
    lines: list[Line] = [
        (Span(clean(winner.attempt), "bold"), Span(f"  {origin_words(winner.origin, winner.base)}", DIM))
    ]
    for name, value in facts:
        pieces = wrap(clean(value), max(width - 13, 20)) if value else []
        for number, piece in enumerate(pieces):
            lines.append((Span(f"{name if number == 0 else '':<13}", DIM), Span(piece)))
    return lines


def case_rows(report: SessionReport) -> list[Row]:
    """Return a row for each case of each winner."""
    return [Row(f"{case.attempt}|{case.device}|{case.case}", _case_cells(case)) for case in report.cases]


def _case_cells(case: CaseTime) -> tuple[Cell, ...]:
    outcome = case.outcome.value if case.outcome is not None else "not timed"
    style = {"faster": "good", "slower": "bad"}.get(outcome, DIM)
    return (
        Cell(clean(short_task(case.task))),
        Cell(clean(case.case)),
        Cell(clean(case.sizes) or UNKNOWN, DIM),
        Cell(clean(case.device) or UNKNOWN, DIM),
        Cell(case_time(case.baseline_us, case.baseline_short_us)),
        Cell(case_time(case.candidate_us, case.candidate_short_us)),
        Cell(case_ratio(case), style),
        Cell(UNKNOWN if case.interval is None else interval(*case.interval), style),
        Cell(outcome, style),
        Cell(roof_words(case.roof)),
        Cell(case.cache or UNKNOWN, DIM),
        Cell(clean(case.why) or UNKNOWN, DIM),
    )


def change_rows(report: SessionReport) -> list[Row]:
    """Return a row for each attempt, by instance."""
    return [Row(change.attempt, _change_cells(change)) for change in report.changes]


def _change_cells(change: Change) -> tuple[Cell, ...]:
    style = speedup_style(change.speedup)
    verdict = words(change.verdict) if change.verdict is not None else "in progress"
    base = change.base.rpartition("#")[2] if change.base else None
    reason = change.error or change.strategy
    return (
        Cell(clean(change.attempt)),
        Cell("*" if change.is_best else "", "key"),
        Cell(f"{letter(change.verdict)} {verdict}", verdict_style(change.verdict)),
        Cell(origin_words(change.origin, base), DIM),
        Cell(ratio_words(change.speedup), style),
        Cell(interval_words(change.speedup), style),
        Cell(gain_words(change.gain)),
        Cell(UNKNOWN if change.slowdown is None else estimate(change.slowdown), DIM),
        Cell(change_words(change.added, change.removed), DIM),
        Cell(line(reason)[0].text if reason else UNKNOWN, "" if change.error else DIM),
    )


def verdict_rows(report: SessionReport) -> list[Row]:
    """Return a row for each verdict and class of error."""
    return [
        Row(
            f"{count.example}|{count.error}",
            (
                Cell(letter(count.verdict), verdict_style(count.verdict)),
                Cell(words(count.verdict), verdict_style(count.verdict)),
                Cell(clean(count.error.replace("_", " ")) or UNKNOWN),
                Cell(grouped(count.attempts)),
                Cell(percent(count.attempts / report.summary.judged)),
                Cell(clean(count.example), DIM),
                Cell(line(count.message)[0].text if count.message else UNKNOWN),
            ),
        )
        for count in report.verdicts
    ]


def stage_lines(report: SessionReport, width: int, glyphs: Glyphs) -> list[Line]:
    """Return how many attempts passed each stage of the judge, with a bar of all judged attempts."""
    judged = report.summary.judged
    if not judged:
        return []
    cells = max(10, min(MOST_BAR_CELLS, width - STAGE_CELLS - 34))
    lines: list[Line] = [line(f"{'stage':<{STAGE_CELLS}} {'passed':>7} {'reached':>8}", "head")]
    for stage in report.stages:
        if not stage.reached and report.summary.timing == "no GPU":
            lines.append(line(f"{stage.stage:<{STAGE_CELLS}}  not done: no GPU", DIM))
            continue
        filled = round(stage.passed / judged * cells)
        share = percent(stage.passed / judged)
        lines.append(
            (
                Span(
                    f"{stage.stage:<{STAGE_CELLS}} {grouped(stage.passed):>7} {grouped(stage.reached):>8}  "
                ),
                Span(glyphs.bar * filled),
                Span(" " * (cells - filled) + f"  {share:>5}", DIM),
            )
        )
    return lines


def cost_rows(report: SessionReport) -> list[Row]:
    """Return what each task cost."""
    return [
        Row(
            cost.task,
            (
                Cell(clean(short_task(cost.task))),
                Cell("yes" if cost.solved else "no", "" if cost.solved else DIM),
                Cell(grouped(cost.attempts)),
                Cell(grouped(cost.to_first_correct)),
                Cell(money(cost.cost_usd)),
                Cell(grouped(cost.input_tokens), DIM),
                Cell(grouped(cost.output_tokens), DIM),
                Cell(duration(cost.device_s or None), DIM),
            ),
        )
        for cost in report.costs
    ]


def cost_lines(report: SessionReport, width: int) -> list[Line]:
    """Return what the whole session cost."""
    summary = report.summary
    price = summary.cost_usd / summary.solved if summary.cost_usd is not None and summary.solved else None
    device = f", {duration(summary.device_s)} on devices" if summary.device_s else ""
    texts = [
        summary.spending,
        "" if price is None else f"{money(price)} for each solved task",
        f"{duration(summary.worked_s)} of work{device}",
    ]
    return [line(piece) for text in texts if text for piece in wrap(clean(text), width)]


def metric_rows(report: SessionReport) -> list[Row]:
    """Return the field's metrics over all tasks, each with its meaning and source."""
    if not report.metrics or not report.summary.judged:
        return []
    return [
        Row(
            metric.name,
            (Cell(metric.name), Cell(metric.value), Cell(metric.meaning, DIM), Cell(metric.source, DIM)),
        )
        for metric in metrics_of(report.metrics[-1])
    ]


def failures(report: SessionReport) -> Sequence[str]:
    """Return the attempts that failed."""
    return [change.attempt for change in report.changes if change.error]


def bests(report: SessionReport) -> Sequence[str]:
    """Return the attempts that are the best of their instance, and the winners."""
    return [change.attempt for change in report.changes if change.is_best]


def waiting(report: SessionReport) -> Sequence[str]:
    """Return the winners that wait for a person."""
    return [winner.attempt for winner in report.winners if winner.waiting]
