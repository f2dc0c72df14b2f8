"""Metrics of sessions by task, as table rows and CSV. A value that was not measured is unknown, never 0 or 1."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec

from harness import Verdict
from sessions import AttemptState, InstanceState, SessionState
from sessions.events import GIVEN
from sessions.names import short_task
from sessions.state.metrics import (
    call_accuracy,
    correct_per_compile,
    execution_accuracy,
    fast_p,
    mean_pass_at_k,
    speedup_geomean,
    speedup_mean,
)
from sessions.state.speed import attempt_speed, speed_of, timed_evaluation
from sessions.state.state import Confirmation
from sessions.state.winners import best_of

from .method_words import option_words
from .tables import Column
from .timed_against import sorted_by_device
from .vocabulary import UNKNOWN, grouped, money, percent

ALL = "all"
"""Name of the row over all tasks of a session."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of one task of a session, or of all its tasks. Shares are 0 to 1; `None` means unknown."""

    session: str
    method: str
    options: str = ""
    """Method options that differ from the defaults, in words."""
    model: str
    task: str
    attempts: int
    """Attempts with a counted verdict."""
    uncounted: int
    """Judged attempts that the metrics leave out: unsupported, cancelled, infra_error."""
    solved: int
    """Tasks with a correct attempt."""
    confirmed: int | None = None
    """Tasks with a confirmed attempt; `None` if no exam ran."""
    tasks: int
    best_attempt: str | None = None
    best_verdict: str | None = None
    best_exam: str | None = None
    """Exam of a correct best attempt: `confirmed`, `failed exam` or `not examined`."""
    best_speedup: float | None = None
    """`Speed.value` of the best attempt."""
    against: str = ""
    """Names of the timing baselines; empty if nothing was timed."""
    best_spread: str = ""
    """Speedup of the best attempt by GPU, measured at the end of the instance: `0 1.42x, 1 1.40x`."""
    call_accuracy: float | None = None
    execution_accuracy: float | None = None
    correct_per_compile: float | None = None
    pass_at_1: float | None = None
    """A sample is one instance; it is correct if any of its attempts is correct."""
    pass_at_k: float | None = None
    k: int
    """Instances per task in the session."""
    fast_1: float | None = None
    """Share of the tasks whose best attempt is correct and faster than the baseline."""
    fast_2: float | None = None
    speedup_mean: float | None = None
    """GEAK's: arithmetic mean over the tasks' best attempts of their means over cases; the exam's times where there are any."""
    speedup_geomean: float | None = None
    """Geometric mean over these attempts of their speeds (`Speed.value`)."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


def rows(state: SessionState) -> list[Row]:
    """Return one row per task, in the session's order; with several tasks also a row over all of them."""
    tasks = list(state.started.tasks) if state.started else []
    bests = bests_of(state)
    by_task = [_row(state, task, [task], bests) for task in tasks]
    return [*by_task, _row(state, ALL, tasks, bests)] if len(tasks) > 1 else by_task


def bests_of(state: SessionState) -> dict[str, AttemptState]:
    """Return the best judged attempt of each task that has one, correct or not: the best of its instances' bests."""
    contenders: dict[str, list[AttemptState]] = {}
    for instance in state.instances.values():
        if instance.best is not None:
            contenders.setdefault(instance.task, []).append(state.attempt(instance.best))
    bests = {task: best_of(attempts) for task, attempts in contenders.items()}
    return {task: best for task, best in bests.items() if best is not None}


def _row(state: SessionState, name: str, tasks: Sequence[str], bests: dict[str, AttemptState]) -> Row:
    instances = [instance for instance in state.instances.values() if instance.task in tasks]
    attempts = [attempt for instance in instances for attempt in instance.attempts]
    evaluations = [
        attempt.evaluation
        for attempt in attempts
        if attempt.evaluation is not None and attempt.origin not in GIVEN
    ]
    counted = [evaluation for evaluation in evaluations if evaluation.verdict.counted]
    samples = [_samples(state, task) for task in tasks]
    sampled = [pair for pair in samples if pair[0] > 0]
    k = state.started.instances if state.started else 0
    winners = [bests[task] for task in tasks if task in bests]
    timed = [evaluation for winner in winners if (evaluation := timed_evaluation(winner)) is not None]
    best = winners[0] if winners and len(tasks) == 1 else None
    solved = best is not None and best.verdict is Verdict.CORRECT
    used = [attempt.usage for attempt in attempts]
    costs = [attempt.cost_usd for attempt in attempts if attempt.cost_usd is not None]
    return Row(
        session=state.started.session if state.started else "",
        method=state.started.method if state.started else "",
        options=option_words(state.started.options) if state.started else "",
        model=state.started.model if state.started else "",
        task=name,
        attempts=len(counted),
        uncounted=len(evaluations) - len(counted),
        solved=sum(correct > 0 for _, correct in samples),
        confirmed=_confirmed(instances),
        tasks=len(tasks),
        best_attempt=best.attempt if best else None,
        best_verdict=str(best.verdict) if best else None,
        best_exam=str(best.confirmation) if best and solved else None,
        best_speedup=speed.value if best and (speed := attempt_speed(best)) else None,
        against=", ".join(
            dict.fromkeys(
                latency.against
                for evaluation in evaluations
                for latency in evaluation.latency
                if latency.against
            )
        ),
        best_spread=", ".join(
            f"{measurement.device} {speed.figure if (speed := speed_of(measurement.evaluation)) else UNKNOWN}"
            for measurement in sorted_by_device(best.spread if best and solved else ())
        ),
        call_accuracy=call_accuracy(evaluations),
        execution_accuracy=execution_accuracy(evaluations),
        correct_per_compile=correct_per_compile(evaluations),
        pass_at_1=mean_pass_at_k(sampled, 1) if len(sampled) == len(tasks) else None,
        pass_at_k=mean_pass_at_k(sampled, k) if k and len(sampled) == len(tasks) else None,
        k=k,
        fast_1=fast_p(timed, 1.0),
        fast_2=fast_p(timed, 2.0),
        speedup_mean=speedup_mean(timed),
        speedup_geomean=speedup_geomean(timed),
        input_tokens=known_sum([usage.input_tokens for usage in used]),
        output_tokens=known_sum([usage.output_tokens for usage in used]),
        cost_usd=sum(costs) if costs else None,
    )


def _samples(state: SessionState, task: str) -> tuple[int, int]:
    """Return the instances of a task with a counted verdict, and with a correct attempt.

    Instances that a person added are left out, because they are not independent.
    """
    verdicts = [
        [
            attempt.verdict
            for attempt in instance.attempts
            if attempt.verdict is not None and attempt.verdict.counted and attempt.origin not in GIVEN
        ]
        for key, instance in state.instances.items()
        if instance.task == task and key not in state.forks
    ]
    samples = [by_instance for by_instance in verdicts if by_instance]
    return len(samples), sum(Verdict.CORRECT in sample for sample in samples)


def _confirmed(instances: Sequence[InstanceState]) -> int | None:
    """Return the number of tasks with a confirmed attempt; `None` if no exam ran."""
    exams = {
        (instance.task, attempt.confirmation)
        for instance in instances
        for attempt in instance.attempts
        if attempt.confirmation is not Confirmation.NOT_EXAMINED
    }
    return sum(confirmation is Confirmation.CONFIRMED for _, confirmation in exams) if exams else None


def known_sum(counts: Sequence[int | None]) -> int | None:
    """Return the sum of the counts that are not `None`; `None` if there are none."""
    numbers = [number for number in counts if number is not None]
    return sum(numbers) if numbers else None


HEADS = (
    Column("task", keep=True),
    Column("best verdict", keep=True),
    Column("exam", keep=True, if_known=True),
    Column("attempts", right=True),
    Column("call", right=True),
    Column("exec", right=True),
    Column("pass@1", right=True),
    Column("pass@k", right=True),
    Column("speedup", right=True, if_known=True),
    Column("GEAK mean", right=True, if_known=True),
    Column("against", if_known=True, drop=4),
    Column("by GPU", if_known=True, drop=3),
    Column("tokens in", right=True, drop=1),
    Column("out", right=True, drop=2),
    Column("cost", right=True, if_known=True),
)


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row, in the order of `HEADS`."""
    best = row.best_verdict or (f"{row.solved}/{row.tasks} solved" if row.tasks > 1 else UNKNOWN)
    of_all = f"{row.confirmed}/{row.solved} confirmed" if row.confirmed is not None else UNKNOWN
    exam = of_all if row.tasks > 1 else row.best_exam or UNKNOWN
    left_out = f" (+{row.uncounted})" if row.uncounted else ""
    return (
        short_task(row.task),
        best,
        exam,
        f"{row.attempts}{left_out}",
        percent(row.call_accuracy),
        percent(row.execution_accuracy),
        percent(row.pass_at_1),
        percent(row.pass_at_k),
        ratio(row.speedup_geomean),
        ratio(row.speedup_mean),
        row.against or UNKNOWN,
        row.best_spread or UNKNOWN,
        grouped(row.input_tokens),
        grouped(row.output_tokens),
        money(row.cost_usd),
    )


def ratio(value: float | None) -> str:
    """Return a measured speedup: `1.42x`."""
    return UNKNOWN if value is None else f"{value:.2f}x"


def markdown_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in GitHub's Markdown."""
    lines = [
        "| " + " | ".join(column.title for column in columns) + " |",
        "|" + "|".join("---:" if column.right else "---" for column in columns) + "|",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]
    return "\n".join(lines)


def as_csv(sessions: Sequence[Sequence[Row]]) -> str:
    """Return every field of every row as CSV; an unknown value is an empty cell."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(Row.__struct_fields__)
    for session in sessions:
        for row in session:
            writer.writerow(["" if value is None else value for value in msgspec.structs.astuple(row)])
    return page.getvalue().rstrip("\n")
