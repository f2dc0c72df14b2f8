"""The field's metrics as sections of a report, each with its source."""

from __future__ import annotations

from typing import NamedTuple

from sessions.metrics.attempt_row import attempt_rows
from sessions.names import short_task
from sessions.state.figure_words import ratio_words
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import UNKNOWN, counted, percent

from .metrics import TaskMetrics
from .model import SessionReport
from .section import Section, section_of


class Metric(NamedTuple):
    """A metric with its meaning."""

    name: str
    value: str
    meaning: str
    source: str


METRICS: tuple[Field[Metric], ...] = (
    Field(Column("metric", 18, 26, keep=True), lambda metric: metric.name),
    Field(Number("value", 6, 10), lambda metric: metric.value),
    Field(Column("counts", 24, 60), lambda metric: metric.meaning, "dim"),
    Field(Column("source", 13, 26, drop=1), lambda metric: metric.source, "dim"),
)
BY_TASK: tuple[Field[TaskMetrics], ...] = (
    Field(Column("task", 8, 26, keep=True), lambda row: short_task(row.task)),
    Field(
        Column("best verdict", 8, 14, keep=True),
        lambda row: row.best_verdict or (f"{row.solved}/{row.tasks} solved" if row.tasks > 1 else ""),
    ),
    Field(Column("exam", 12, 16, keep=True, if_known=True), lambda row: _exam(row)),
    Field(
        Number("attempts", 8, 12),
        lambda row: f"{row.attempts}{f' (+{row.uncounted})' if row.uncounted else ''}",
    ),
    Field(Number("call", drop=3), lambda row: percent(row.call_accuracy)),
    Field(Number("exec"), lambda row: percent(row.execution_accuracy)),
    Field(Number("pass@1", drop=1), lambda row: percent(row.pass_at_1)),
    Field(Number("pass@k", drop=5), lambda row: percent(row.pass_at_k)),
    Field(Number("speedup", if_known=True), lambda row: ratio_words(row.speedup_geomean, row.speedup_sign)),
    Field(
        Number("GEAK mean", if_known=True, drop=4),
        lambda row: ratio_words(row.speedup_mean, row.speedup_sign),
    ),
    Field(Column("against", 7, 12, if_known=True, drop=6), lambda row: row.against),
)


def metric_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the metrics over all tasks with their meanings, and the metrics by task."""
    total = report.metrics[-1] if report.metrics and report.tally.judged else None
    notes = []
    if total is not None:
        notes.append(f"All metrics use the open cases and {counted(total.attempts, 'attempt')} of models.")
        if total.uncounted:
            notes.append(
                f"They leave out {total.uncounted} without a verdict on the candidate (unsupported, cancelled, our failure)."
            )
        weak = sum(bool(row.weak_oracle) for row in attempt_rows(report.state))
        if weak:
            notes.append(
                f"They count {counted(weak, 'attempt')} at tasks with a weak oracle; the tables below leave them out."
            )
        if total.speedup_geomean is None and any(winner.speed is not None for winner in report.winners):
            notes.append(
                "No mean speedup over tasks: the winners were timed with different hardware or software."
            )
    metrics, by_task = (_metrics(total), report.metrics) if total is not None else ((), ())
    return (
        section_of("Metrics of the field", METRICS, metrics, lambda metric: f"metric:{metric.name}", *notes),
        section_of("Metrics by task", BY_TASK, by_task, lambda row: f"task:{row.task}"),
    )


def _exam(row: TaskMetrics) -> str:
    if row.tasks <= 1:
        return row.best_exam or UNKNOWN
    return UNKNOWN if row.confirmed is None else f"{row.confirmed}/{row.solved} confirmed"


def _metrics(row: TaskMetrics) -> list[Metric]:
    """Return the metrics of a session."""
    share = percent
    geomean, mean = (
        ratio_words(value, row.speedup_sign) for value in (row.speedup_geomean, row.speedup_mean)
    )
    return [
        Metric("call accuracy", share(row.call_accuracy), "attempts that import and run the first case", "TritonBench"),
        Metric("execution accuracy", share(row.execution_accuracy), "attempts that are correct", "TritonBench"),
        Metric("correct / compile", share(row.correct_per_compile), "correct attempts of those that run", "KernelBench-X"),
        Metric("pass@1", share(row.pass_at_1), "instances with a correct attempt", "Chen et al. 2021"),
        *([Metric(f"pass@{row.k}", share(row.pass_at_k), f"tasks solved by any of {row.k} instances", "Chen et al. 2021")]
          if row.k > 1 else []),
        Metric("fast_1", share(row.fast_1), "tasks with a winner above 1x, whatever its interval", "KernelBench"),
        Metric("fast_2", share(row.fast_2), "tasks with a winner above 2x, whatever its interval", "KernelBench"),
        Metric(
            "speedup, geometric mean", geomean, "winners; a case without a ratio counts as 1x",
            "Fleming and Wallace 1986",
        ),
        Metric("speedup, GEAK's mean", mean, "winners; mean over cases, then over tasks", "GEAK"),
    ]  # fmt: skip
