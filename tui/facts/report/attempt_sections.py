"""The sections of a report about its attempts: changes, stages, verdicts, decisions and cost."""

from __future__ import annotations

from harness import Verdict
from sessions.names import short_task
from tui.facts.styles import speed_style, verdict_style
from tui.facts.tables import Cell, Column
from tui.facts.vocabulary import (
    FINDING,
    UNKNOWN,
    duration,
    estimate,
    grouped,
    letter,
    moment,
    money,
    percent,
    percent_change,
    words,
)

from .bars import share_bar
from .model import Change, Decided, SessionReport, StageCount, TaskCost, VerdictCount
from .phrases import change_words, decided_words, figure_words, interval_words, origin_words
from .section import Field, Section, columns_of, rows_of

CHANGES: tuple[Field[Change], ...] = (
    Field(Column("attempt", most=26, keep=True), lambda change: change.attempt),
    Field(Column("", 1, 1, if_known=True), lambda change: Cell("*" if change.is_best else "", "key")),
    Field(
        Column("verdict", 2, 15, keep=True),
        lambda change: Cell(
            f"{letter(change.verdict)} {_verdict(change)}",
            "warn" if change.findings else _verdict_style(change.verdict),
        ),
    ),
    Field(
        Column("origin", 15, 18, drop=4),
        lambda change: Cell(
            origin_words(change.origin, change.base and change.base.rpartition("#")[2]), "dim"
        ),
    ),
    Field(
        Column("speedup", 9, 10, right=True, if_known=True),
        lambda change: Cell(figure_words(change.speed), speed_style(change.speed)),
    ),
    Field(
        Column("95 %", 12, 14, right=True, if_known=True, drop=6),
        lambda change: Cell(interval_words(change.speed), speed_style(change.speed)),
    ),
    Field(
        Column("to base", 7, 7, right=True, if_known=True, drop=2), lambda change: percent_change(change.gain)
    ),
    Field(
        Column("estimate", 18, 20, right=True, if_known=True, drop=1),
        lambda change: Cell(UNKNOWN if change.slowdown is None else estimate(change.slowdown), "dim"),
    ),
    Field(
        Column("lines", 6, 11, right=True, if_known=True, drop=5),
        lambda change: Cell(change_words(change.added, change.removed), "dim"),
    ),
    Field(
        Column("strategy, or error", 20, 90, drop=3),
        lambda change: Cell(
            change.error or change.findings or change.strategy or UNKNOWN, "" if change.error else "dim"
        ),
    ),
)
VERDICTS: tuple[Field[VerdictCount], ...] = (
    Field(
        Column("verdict", 8, 16, keep=True),
        lambda count: Cell(f"{letter(count.verdict)} {words(count.verdict)}", _verdict_style(count.verdict)),
    ),
    Field(Column("error", 8, 24), lambda count: count.error.replace("_", " ") or UNKNOWN),
    Field(Column("attempts", 8, 8, right=True), lambda count: grouped(count.attempts)),
    Field(Column("share", 5, 6, right=True), lambda count: percent(count.share)),
    Field(Column("newest", 8, 26, keep=True, drop=1), lambda count: Cell(count.example, "dim")),
    Field(Column("message of the newest", 24, 100, if_known=True), lambda count: count.message or UNKNOWN),
)
DECISIONS: tuple[Field[Decided], ...] = (
    Field(Column("attempt", most=26, keep=True), lambda decided: decided.attempt),
    Field(
        Column("verdict", 7, 14, drop=2),
        lambda decided: words(decided.verdict) if decided.verdict is not None else UNKNOWN,
    ),
    Field(Column("decision", 8, 40, keep=True), decided_words),
    Field(Column("by", 3, 16), lambda decided: Cell(decided.by or UNKNOWN, "dim")),
    Field(Column("when (UTC)", 16, 16, drop=1), lambda decided: Cell(moment(decided.wall), "dim")),
    Field(Column("reason", 20, 100, if_known=True), lambda decided: decided.why or UNKNOWN),
)
COSTS: tuple[Field[TaskCost], ...] = (
    Field(Column("task", 8, 30, keep=True), lambda cost: short_task(cost.task)),
    Field(Column("solved", 6, 6), lambda cost: "yes" if cost.to_first_correct else Cell("no", "dim")),
    Field(Column("attempts", 8, 8, right=True), lambda cost: grouped(cost.attempts)),
    Field(
        Column("to first correct", 16, 16, right=True, if_known=True, drop=1),
        lambda cost: grouped(cost.to_first_correct),
    ),
    Field(Column("cost", 7, 9, right=True, if_known=True), lambda cost: money(cost.spent.cost_usd)),
    Field(
        Column("tokens in", 9, 12, right=True, if_known=True, drop=2),
        lambda cost: Cell(grouped(cost.spent.input_tokens), "dim"),
    ),
    Field(
        Column("out", 7, 12, right=True, if_known=True, drop=3),
        lambda cost: Cell(grouped(cost.spent.output_tokens), "dim"),
    ),
    Field(
        Column("on devices", 10, 12, right=True, if_known=True, drop=4),
        lambda cost: Cell(duration(cost.spent.device_s or None), "dim"),
    ),
)


def attempt_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return every attempt with what it changed and gained."""
    notes = []
    if any(change.gain is not None for change in report.changes):
        notes.append("To base: change in speed on the cases that both timed, without an interval.")
    if any(change.is_apart for change in report.changes):
        notes.append("No figure to base: other hardware or software timed the base.")
    if any(change.is_best for change in report.changes):
        notes.append("`*` is the best attempt of its instance.")
    return (
        Section(
            "From attempt to attempt",
            sentences=tuple(notes),
            columns=columns_of(CHANGES),
            rows=rows_of(CHANGES, report.changes, lambda change: change.attempt),
        ),
    )


def _verdict(change: Change) -> str:
    """Return `correct`, `correct !` with findings, or `in progress`."""
    if change.verdict is None:
        return "in progress"
    return f"{words(change.verdict)} {FINDING}" if change.findings else words(change.verdict)


def _verdict_style(verdict: Verdict | None) -> str:
    """Return the style of a verdict; in a report green is for speedups only."""
    return "" if verdict is Verdict.CORRECT else verdict_style(verdict)


def verdict_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return how far the attempts came, and their verdicts by class of error."""
    judged = report.summary.tally.judged
    no_gpu = report.summary.timing == "no GPU"
    stages: tuple[Field[StageCount], ...] = (
        Field(Column("stage", 12, 12, keep=True), lambda stage: stage.stage),
        Field(
            Column("reached", 7, 8, right=True),
            lambda stage: "no GPU" if no_gpu and not stage.reached else grouped(stage.reached),
        ),
        Field(
            Column("passed", 7, 8, right=True),
            lambda stage: _passed(stage, grouped(stage.passed), no_gpu=no_gpu),
        ),
        Field(
            Column("of all judged", 13, 13, right=True),
            lambda stage: Cell(_passed(stage, percent(stage.passed / judged), no_gpu=no_gpu), "dim"),
        ),
        Field(Column("", 10, 60, drop=1), lambda stage: Cell(share_bar(stage.passed / judged), "bar")),
    )
    return (
        Section(
            "How far the attempts came",
            columns=columns_of(stages),
            rows=rows_of(stages, report.stages, lambda stage: f"stage:{stage.stage}") if judged else (),
        ),
        Section(
            "Verdicts by class of error",
            columns=columns_of(VERDICTS),
            rows=rows_of(VERDICTS, report.verdicts, lambda count: f"{count.example}|{count.error}"),
        ),
    )


def _passed(stage: StageCount, text: str, *, no_gpu: bool) -> str:
    return UNKNOWN if no_gpu and not stage.reached else text


def decision_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the decisions of people with their reasons, in the order in which they were made."""
    return (
        Section(
            "Decisions of people",
            columns=columns_of(DECISIONS),
            rows=rows_of(DECISIONS, report.decisions, lambda decided: decided.attempt),
        ),
    )


def cost_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return what the attempts of each task spent."""
    return (
        Section(
            "Cost by task",
            sentences=("To first correct: attempts of the task that were judged until one was correct.",)
            if report.summary.solved
            else (),
            columns=columns_of(COSTS),
            rows=rows_of(COSTS, report.costs, lambda cost: f"task:{cost.task}"),
        ),
    )
