"""The sections of a report about its attempts: changes, stages, verdicts and cost."""

from __future__ import annotations

from collections.abc import Iterator

from sessions.names import short_task
from tui.tables import Column
from tui.vocabulary import UNKNOWN, duration, estimate, grouped, money, percent, words

from .model import SessionReport
from .phrases import change_verdict, change_words, gain_words, origin_words, speed_words
from .section import Section


def attempt_sections(report: SessionReport) -> Iterator[Section]:
    """Yield the sections about attempts."""
    yield _changes(report)
    yield _stages(report)
    yield _verdicts(report)
    yield _costs(report)


def _changes(report: SessionReport) -> Section:
    notes = []
    if any(change.gain is not None for change in report.changes):
        notes.append("To base: change in speed on the cases that both timed, without an interval.")
    if any(change.is_best for change in report.changes):
        notes.append("`*` is the best attempt of its instance.")
    return Section(
        "From attempt to attempt",
        sentences=tuple(notes),
        columns=(
            Column("attempt", keep=True),
            Column("origin", keep=True),
            Column("verdict", keep=True),
            Column("speedup", right=True, if_known=True),
            Column("to base", right=True, if_known=True, drop=2),
            Column("estimate", right=True, if_known=True, drop=1),
            Column("lines", right=True, if_known=True, drop=3),
            Column("strategy, or error", least=24, drop=4),
        ),
        rows=tuple(
            (
                f"{change.attempt}{' *' if change.is_best else ''}",
                origin_words(change.origin, change.base.rpartition("#")[2] if change.base else None),
                change_verdict(change),
                speed_words(change.speed),
                gain_words(change.gain),
                UNKNOWN if change.slowdown is None else estimate(change.slowdown),
                change_words(change.added, change.removed),
                change.error or change.findings or change.strategy or UNKNOWN,
            )
            for change in report.changes
        ),
    )


def _stages(report: SessionReport) -> Section:
    judged = report.summary.tally.judged
    return Section(
        "How far the attempts came",
        columns=(
            Column("stage", keep=True),
            Column("reached", right=True),
            Column("passed", right=True),
            Column("of all judged", right=True),
        ),
        rows=tuple(
            (
                stage.stage,
                grouped(stage.reached),
                grouped(stage.passed),
                percent(stage.passed / judged),
            )
            if stage.reached or report.summary.timing != "no GPU"
            else (stage.stage, "no GPU", UNKNOWN, UNKNOWN)
            for stage in report.stages
        )
        if judged
        else (),
    )


def _verdicts(report: SessionReport) -> Section:
    return Section(
        "Verdicts by class of error",
        columns=(
            Column("verdict", keep=True),
            Column("error"),
            Column("attempts", right=True),
            Column("share", right=True),
            Column("newest", keep=True, drop=1),
            Column("its message", least=24, if_known=True),
        ),
        rows=tuple(
            (
                words(count.verdict),
                count.error.replace("_", " ") or UNKNOWN,
                grouped(count.attempts),
                percent(count.share),
                count.example,
                count.message or UNKNOWN,
            )
            for count in report.verdicts
        ),
    )


def _costs(report: SessionReport) -> Section:
    return Section(
        "Cost by task",
        sentences=("To first correct: attempts of the task that were judged until one was correct.",)
        if report.summary.solved
        else (),
        columns=(
            Column("task", keep=True),
            Column("solved"),
            Column("attempts", right=True),
            Column("to first correct", right=True, if_known=True),
            Column("cost", right=True, if_known=True),
            Column("tokens in", right=True, if_known=True),
            Column("out", right=True, if_known=True),
            Column("on devices", right=True, if_known=True),
        ),
        rows=tuple(
            (
                short_task(cost.task),
                "yes" if cost.solved else "no",
                grouped(cost.attempts),
                UNKNOWN if cost.to_first_correct is None else grouped(cost.to_first_correct),
                money(cost.cost_usd),
                grouped(cost.input_tokens),
                grouped(cost.output_tokens),
                duration(cost.device_s or None),
            )
            for cost in report.costs
        ),
    )
