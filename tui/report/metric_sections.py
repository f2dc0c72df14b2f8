"""The field's metrics as sections of a report, each with its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tui.reporting import HEADS, Row, cells, ratio
from tui.tables import Column
from tui.vocabulary import percent

from .model import SessionReport
from .section import Section


class Metric(NamedTuple):
    """A metric with its meaning."""

    name: str
    value: str
    meaning: str
    source: str


def metrics_of(row: Row) -> list[Metric]:
    """Return the metrics of a session, or of one of its tasks."""
    return [
        Metric(
            "call accuracy",
            percent(row.call_accuracy),
            "attempts that import and run the first case",
            "TritonBench",
        ),
        Metric(
            "execution accuracy", percent(row.execution_accuracy), "attempts that are correct", "TritonBench"
        ),
        Metric(
            "correct / compile",
            percent(row.correct_per_compile),
            "correct attempts of those that run",
            "KernelBench-X",
        ),
        Metric("pass@1", percent(row.pass_at_1), "instances with a correct attempt", "Chen et al. 2021"),
        Metric(
            f"pass@{row.k}",
            percent(row.pass_at_k),
            f"tasks solved by any of {row.k} instances",
            "Chen et al. 2021",
        ),
        Metric(
            "fast_1",
            percent(row.fast_1),
            "tasks with a winner above 1x, whatever its interval",
            "KernelBench",
        ),
        Metric(
            "fast_2",
            percent(row.fast_2),
            "tasks with a winner above 2x, whatever its interval",
            "KernelBench",
        ),
        Metric(
            "speedup, geometric mean",
            ratio(row.speedup_geomean),
            "winners; a case without a ratio counts as 1x",
            "Fleming and Wallace 1986",
        ),
        Metric(
            "speedup, GEAK's mean",
            ratio(row.speedup_mean),
            "winners; mean over cases, then over tasks",
            "GEAK",
        ),
    ]


def metric_sections(report: SessionReport) -> Iterator[Section]:
    """Yield the metrics over all tasks with their meanings, and the table of metrics by task."""
    if not report.metrics or not report.summary.tally.judged:
        return
    total = report.metrics[-1]
    left_out = (
        f"They leave out {total.uncounted} without a verdict on the candidate (unsupported, cancelled, our failure)."
        if total.uncounted
        else ""
    )
    counted = f"All metrics use the open cases and {total.attempts} attempts of models."
    yield Section(
        "Metrics of the field",
        sentences=tuple(filter(None, (counted, left_out))),
        columns=(
            Column("metric", keep=True),
            Column("value", right=True),
            Column("counts", least=24),
            Column("source", drop=1),
        ),
        rows=tuple(metrics_of(total)),
    )
    yield Section("Metrics by task", columns=HEADS, rows=tuple(map(cells, report.metrics)))
