"""Rows and lines of the Report screen below the winners: cases, attempts, verdicts, cost and metrics."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Verdict
from sessions.names import short_task
from tui.cockpit.lines import Line, Span, clean, line, wrap
from tui.cockpit.report_view import DIM, MOST_BAR_CELLS
from tui.report.bars import Glyphs
from tui.report.metric_sections import metrics_of
from tui.report.model import CaseTime, Change, SessionReport
from tui.report.phrases import (
    case_ratio,
    case_time,
    change_verdict,
    change_words,
    figure_words,
    gain_words,
    interval_words,
    origin_words,
    roof_words,
)
from tui.tables import Cell, Column, Row
from tui.vocabulary import (
    UNKNOWN,
    duration,
    estimate,
    grouped,
    interval,
    letter,
    money,
    percent,
    speed_style,
    verdict_style,
    words,
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
    Column("newest", 8, 26, drop=1),
    Column("message of the newest", 30, 100, if_known=True),
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
STAGE_CELLS = 12


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
    style = speed_style(change.speed)
    base = change.base.rpartition("#")[2] if change.base else None
    reason = change.error or change.findings or change.strategy
    return (
        Cell(clean(change.attempt)),
        Cell("*" if change.is_best else "", "key"),
        Cell(
            f"{letter(change.verdict)} {change_verdict(change)}",
            "warn" if change.findings else _verdict_style(change.verdict),
        ),
        Cell(origin_words(change.origin, base), DIM),
        Cell(figure_words(change.speed), style),
        Cell(interval_words(change.speed), style),
        Cell(gain_words(change.gain)),
        Cell(UNKNOWN if change.slowdown is None else estimate(change.slowdown), DIM),
        Cell(change_words(change.added, change.removed), DIM),
        Cell(line(reason)[0].text if reason else UNKNOWN, "" if change.error else DIM),
    )


def _verdict_style(verdict: Verdict | None) -> str:
    """Return the style of a verdict; here green is for speedups only."""
    return "" if verdict is Verdict.CORRECT else verdict_style(verdict)


def verdict_rows(report: SessionReport) -> list[Row]:
    """Return a row for each verdict and class of error."""
    return [
        Row(
            f"{count.example}|{count.error}",
            (
                Cell(letter(count.verdict), _verdict_style(count.verdict)),
                Cell(words(count.verdict), _verdict_style(count.verdict)),
                Cell(clean(count.error.replace("_", " ")) or UNKNOWN),
                Cell(grouped(count.attempts)),
                Cell(percent(count.share)),
                Cell(clean(count.example), DIM),
                Cell(line(count.message)[0].text if count.message else UNKNOWN),
            ),
        )
        for count in report.verdicts
    ]


def stage_lines(report: SessionReport, width: int, glyphs: Glyphs) -> list[Line]:
    """Return how many attempts passed each stage of the judge, with a bar of all judged attempts."""
    judged = report.summary.tally.judged
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
    if not report.metrics or not report.summary.tally.judged:
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
    return [
        change.attempt
        for change in report.changes
        if change.verdict is not None and change.verdict.is_failure
    ]


def bests(report: SessionReport) -> Sequence[str]:
    """Return the attempts that are the best of their instance, and the winners."""
    return [change.attempt for change in report.changes if change.is_best]


def waiting(report: SessionReport) -> Sequence[str]:
    """Return the winners that wait for a person."""
    return [winner.attempt for winner in report.winners if winner.waiting]
