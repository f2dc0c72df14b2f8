"""The panes of a report and their sections, which the screen and every printed format show alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from engine.tuning.best_by_case import best_by_case
from sessions.metrics.selection import counted_rows
from sessions.names import short_task
from sessions.state.figure_words import ratio_words
from tui.facts.endings import session_ending
from tui.facts.evaluation.best_by_case import FIELDS, MEASURED, TITLE
from tui.facts.evaluation.counted import TRAFFIC
from tui.facts.evaluation.provenance import verification_words
from tui.facts.evaluation.times import time_fields
from tui.facts.settings_words import REFERENCE_SHOWN, method_words
from tui.facts.spending import session_device_words, session_spent_words
from tui.facts.tables import Cell, Column, Field, Number, Row, columns_of, rows_of
from tui.facts.vocabulary import NO_GPU, UNKNOWN, counted, duration, grouped, money, percent

from .attempt_sections import attempt_sections, decision_sections
from .count_sections import cost_sections, verdict_sections
from .metrics import TaskMetrics
from .model import SessionReport
from .section import Section, section_of
from .winner_sections import winner_sections


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
    Field(Number("ran", drop=3), lambda row: percent(row.ran)),
    Field(Number("correct"), lambda row: percent(row.correct)),
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
        notes.append(f"All metrics use the open cases of {counted(total.attempts, 'attempt')}.")
        left_out = counted_rows(report.rows).left_out
        if left_out:
            reasons = ", ".join(f"{number} {reason}" for reason, number in left_out.items())
            notes.append(f"They leave out: {reasons}.")
        notes.append("ran, correct: shares of the attempts.")
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
        Metric("call accuracy", share(row.call_accuracy), "tasks with an attempt that imports and runs the first case", "TritonBench"),
        Metric("execution accuracy", share(row.execution_accuracy), "tasks whose best attempt is correct", "TritonBench"),
        Metric("correct / compile", share(row.correct_per_compile), "correct tasks of those with an attempt that runs", "KernelBench-X"),
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


ATTEMPT = Column("attempt", most=26, keep=True)


def case_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the cases of the winners, and what `tune` found for each case."""
    bests = [best for winner in report.winners for best in best_by_case(report.state, winner.task)]
    fields = time_fields([row for winner in report.winners for row in winner.cases])
    suspects = [
        f"{winner.attempt}, case {row.case}: suspect: {row.suspect}"
        for winner in report.winners
        for row in winner.cases
        if row.suspect
    ]
    rows = tuple(
        Row(f"{winner.attempt}|{row.key}", (Cell(winner.attempt), *row.cells))
        for winner in report.winners
        for row in rows_of(fields, winner.cases, lambda case: case.key)
    )
    medians = "Medians in microseconds; `<` says that a time is too short to be timed exactly."
    counted_bytes = [
        (winner.attempt, traffic)
        for winner in report.winners
        if winner.speed is None and winner.evaluation is not None
        for traffic in winner.evaluation.traffic
    ]
    return (
        Section(
            "Cases of the winners", (medians, *suspects) if rows else (), (ATTEMPT, *columns_of(fields)), rows
        ),
        section_of(
            TITLE,
            FIELDS,
            bests,
            lambda best: f"{best.attempt}|{best.row.case}",
            *([MEASURED] if bests else []),
        ),
        Section(
            "Bytes of the cases of winners without times",
            ("Counted by the interpreter at CPU sizes.",) if counted_bytes else (),
            (ATTEMPT, *columns_of(TRAFFIC)),
            tuple(
                Row(f"{name}|{traffic.case}", (Cell(name), *(field.cell(traffic) for field in TRAFFIC)))
                for name, traffic in counted_bytes
            ),
        ),
    )


def _metrics_on_screen(report: SessionReport) -> tuple[Section, ...]:
    metrics, by_task = metric_sections(report)
    tables = f"By iteration, by instance, by hardware: `wavedeck report {report.session}`."
    return metrics, replace(by_task, sentences=(*by_task.sentences, tables))


PRINTED: dict[str, Callable[[SessionReport], tuple[Section, ...]]] = {
    "winners": winner_sections,
    "cases": case_sections,
    "attempts": attempt_sections,
    "verdicts": verdict_sections,
    "decisions": decision_sections,
    "cost": cost_sections,
    "metrics": metric_sections,
}
"""The sections that begin a printed report; then come the tables over attempts."""
PANES = PRINTED | {"metrics": _metrics_on_screen}
"""The panes of the screen in their order. A pane has the same number of sections for each report; some may be empty."""


def sections_of(report: SessionReport) -> list[Section]:
    """Return the sections of a report, winners first; a section without content is left out."""
    return [section for of_pane in PRINTED.values() for section in of_pane(report) if not section.is_empty]


def facts_of(report: SessionReport) -> dict[str, str]:
    """Return the facts above the sections by name; a fact without a value is left out."""
    state, tally = report.state, report.tally
    started = state.started
    total = report.metrics[-1] if report.metrics else None
    solved = total.solved if total else 0
    exams = "" if total is None or total.confirmed is None else f", {total.confirmed} confirmed"
    share = "" if tally.share_correct is None else f", {percent(tally.share_correct)} correct"
    uncounted = f", {grouped(tally.uncounted)} not counted" if tally.uncounted else ""
    decisions = [attempt.decision.accepted for attempt in state.attempts() if attempt.decision is not None]
    waiting = sum(attempt.waiting for attempt in state.attempts())
    people = (
        f"{decisions.count(True)} accepted" if True in decisions else "",
        f"{decisions.count(False)} rejected" if False in decisions else "",
        f"{counted(waiting, 'attempt')} waiting for review" if waiting else "",
    )
    against = (started.against if started else "") or (total.against if total else "")
    timing = f"measured against {against or 'the baseline'}" if report.is_measured else "not measured yet"
    price = state.cost_usd / solved if state.cost_usd is not None and solved else None
    facts = {
        "title": state.title,
        "session": f"{report.session}, {session_ending(state)}",
        "reference": REFERENCE_SHOWN if started and any(map(started.shows_reference, started.tasks)) else "",
        "method": f"{method_words(started.method, started.options)} with {started.model}" if started else "",
        "tasks": f"{solved} of {len(started.tasks) if started else 0} solved{exams}",
        "speed": timing if report.has_gpu else NO_GPU,
        "hardware": "; ".join(report.hardware),
        "verified": verification_words(state.verification),
        "attempts": f"{grouped(tally.judged)} judged{share}{uncounted}",
        "people": ", ".join(filter(None, people)),
        "spent": session_spent_words(state),
        "price": "" if price is None else f"{money(price)} for each solved task",
        "time": ", ".join(filter(None, (f"{duration(state.worked_s)} of work", session_device_words(state)))),
    }
    return {name: value for name, value in facts.items() if value}
