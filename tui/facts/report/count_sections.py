"""The sections of a report that count attempts: by stage, by verdict, and what each task cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness import STAGES, Verdict
from sessions.names import short_task, stage_word
from sessions.state.state import AttemptState, SessionState
from tui.facts.spending import Spending, spending_of
from tui.facts.tables import Cell, Column, Field, Number
from tui.facts.vocabulary import UNKNOWN, duration, grouped, letter, money, percent, words

from .attempt_sections import report_style
from .model import SessionReport
from .section import Section, section_of


class StageCount(NamedTuple):
    """How many attempts with a verdict that counts reached and passed a stage of the judge."""

    stage: str
    reached: int
    passed: int


class VerdictCount(NamedTuple):
    """Attempts with one verdict and one class of error, in the order of their verdicts."""

    verdict: Verdict
    error: str
    """The error's class; empty for a correct attempt."""
    attempts: list[AttemptState]


class TaskCost(NamedTuple):
    """The cost of a task's attempts."""

    task: str
    attempts: int
    """Attempts with a verdict that counts."""
    to_first_correct: int | None
    """How many of them were judged until one was correct; `None` if the task is not solved."""
    spent: Spending


def _judged(attempts: Iterable[AttemptState]) -> list[AttemptState]:
    """Return the attempts with a verdict, in the order of their verdicts."""
    return sorted(
        (attempt for attempt in attempts if attempt.verdict is not None),
        key=lambda attempt: attempt.judged_seq,
    )


def stage_counts(state: SessionState) -> list[StageCount]:
    """Return the counts of each stage."""
    outcomes = [
        {stage.name: stage.ok for stage in attempt.evaluation.stages if stage.ok is not None}
        for attempt in state.attempts()
        if attempt.verdict is not None and attempt.verdict.counted and attempt.evaluation is not None
    ]
    return [
        StageCount(
            stage,
            sum(stage in outcome for outcome in outcomes),
            sum(outcome.get(stage, False) for outcome in outcomes),
        )
        for stage in STAGES
    ]


def verdict_counts(state: SessionState) -> list[VerdictCount]:
    """Return the attempts by verdict and class of error: correct first, then the most frequent."""
    groups: dict[tuple[Verdict, str], list[AttemptState]] = {}
    for attempt in _judged(state.attempts()):
        if (judged := attempt.judged) is not None:
            groups.setdefault((judged.verdict, judged.error_kind), []).append(attempt)
    counts = [VerdictCount(*kind, attempts) for kind, attempts in groups.items()]
    return sorted(counts, key=lambda count: (count.verdict is not Verdict.CORRECT, -len(count.attempts)))


def task_costs(state: SessionState) -> Iterator[TaskCost]:
    """Yield what the attempts of each task spent, in the session's order."""
    attempts: dict[str, list[AttemptState]] = {task: [] for task in state.tasks()}
    for instance in state.instances.values():
        attempts[instance.task] += instance.attempts
    for task, own in attempts.items():
        verdicts = [
            attempt.verdict for attempt in _judged(own) if attempt.verdict and attempt.verdict.counted
        ]
        solved = verdicts.index(Verdict.CORRECT) + 1 if Verdict.CORRECT in verdicts else None
        yield TaskCost(task, len(verdicts), solved, spending_of(own))


def _message(count: VerdictCount) -> str:
    """Return the first line of the newest attempt's error."""
    newest = count.attempts[-1].judged
    return (newest.error or "") if newest is not None else ""


COSTS: tuple[Field[TaskCost], ...] = (
    Field(Column("task", 8, 30, keep=True), lambda cost: short_task(cost.task)),
    Field(Column("solved", 6, 6), lambda cost: "yes" if cost.to_first_correct else Cell("no", "dim")),
    Field(Number("attempts", 8, 8), lambda cost: grouped(cost.attempts)),
    Field(
        Number("to first correct", 16, 16, if_known=True, drop=1), lambda cost: grouped(cost.to_first_correct)
    ),
    Field(Number("cost", 7, 9, if_known=True), lambda cost: money(cost.spent.cost_usd)),
    Field(
        Number("tokens in", 9, 12, if_known=True, drop=2),
        lambda cost: grouped(cost.spent.input_tokens),
        "dim",
    ),
    Field(Number("out", 7, 12, if_known=True, drop=3), lambda cost: grouped(cost.spent.output_tokens), "dim"),
    Field(
        Number("on devices", 10, 12, if_known=True, drop=4),
        lambda cost: Cell(duration(cost.spent.device_s or None), "dim", value=cost.spent.device_s or None),
    ),
)


def verdict_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return how far the attempts came, and their verdicts by class of error."""
    judged, no_gpu = report.tally.judged, not report.has_gpu
    verdicts: Sequence[Field[VerdictCount]] = (
        Field(
            Column("verdict", 8, 16, keep=True),
            lambda count: Cell(
                f"{letter(count.verdict)} {words(count.verdict)}", report_style(count.verdict)
            ),
        ),
        Field(Column("error", 8, 24), lambda count: count.error.replace("_", " ")),
        Field(Number("attempts", 8, 8), lambda count: grouped(len(count.attempts))),
        Field(
            Number("share", 5, 6),
            lambda count: percent(len(count.attempts) / judged) if count.verdict.counted else "",
        ),
        Field(Column("newest", 8, 26, keep=True, drop=1), lambda count: count.attempts[-1].attempt, "dim"),
        Field(Column("message of the newest", 24, 100, if_known=True), _message),
    )

    def passed(count: StageCount, text: str) -> str:
        return UNKNOWN if no_gpu and not count.reached else text

    stages: Sequence[Field[StageCount]] = (
        Field(Column("stage", 12, 12, keep=True), lambda count: stage_word(count.stage)),
        Field(
            Number("reached", 7, 8),
            lambda count: "no GPU" if no_gpu and not count.reached else grouped(count.reached),
        ),
        Field(Number("passed", 7, 8), lambda count: passed(count, grouped(count.passed))),
        Field(
            Number("of all judged", 13, 13),
            lambda count: passed(count, percent(count.passed / judged)),
            "dim",
        ),
    )
    return (
        section_of(
            "How far the attempts came",
            stages,
            stage_counts(report.state) if judged else (),
            lambda count: f"stage:{count.stage}",
        ),
        section_of(
            "Verdicts by class of error",
            verdicts,
            verdict_counts(report.state),
            lambda count: f"{count.attempts[-1].attempt}|{count.error}",
        ),
    )


def cost_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return what the attempts of each task spent."""
    costs = list(task_costs(report.state))
    solved = any(cost.to_first_correct for cost in costs)
    note = "To first correct: attempts of the task that were judged until one was correct." if solved else ""
    return (section_of("Cost by task", COSTS, costs, lambda cost: f"task:{cost.task}", note),)
