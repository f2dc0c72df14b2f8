"""Sessions' metrics by task, and the forms in which they are told. What was not measured is unknown, never 0 or 1."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec

from harness import Verdict
from sessions import InstanceState, SessionState
from sessions.metrics import (
    call_accuracy,
    correct_per_compile,
    execution_accuracy,
    fast_p,
    mean_pass_at_k,
    speedup_geomean,
    speedup_mean,
)
from sessions.names import short_task
from sessions.state import Confirmation
from sessions.winners import best_of

from .method_words import option_words
from .plain import UNKNOWN, Column, count, money, table

ALL = "all"
"""The row over every task of a session."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of one task of one session, or of all its tasks; shares are 0 to 1, unknown is `None`."""

    session: str
    method: str
    options: str = ""
    """Of the method, those that are not the usual ones, in words."""
    model: str
    task: str
    attempts: int
    """Judged and counted ones."""
    uncounted: int
    """Judged ones that metrics leave out: unsupported, cancelled, infra_error."""
    solved: int
    """Tasks with a correct attempt."""
    confirmed: int | None = None
    """Tasks with a confirmed attempt; `None` where nothing was examined."""
    tasks: int
    best_attempt: str | None = None
    best_verdict: str | None = None
    best_exam: str | None = None
    """Of a correct best attempt: `confirmed`, `not confirmed` or `not examined`."""
    best_speedup: float | None = None
    against: str = ""
    """What the speedups are against, by name; empty where nothing was timed."""
    best_spread: str = ""
    """Speedup of the best attempt on each GPU that it was measured on at its instance's end: `0 1.42x, 1 1.40x`."""
    call_accuracy: float | None = None
    execution_accuracy: float | None = None
    correct_per_compile: float | None = None
    pass_at_1: float | None = None
    """Over instances: a sample is one instance, correct when any of its attempts is."""
    pass_at_k: float | None = None
    k: int
    """Instances of the session."""
    fast_1: float | None = None
    fast_2: float | None = None
    speedup_mean: float | None = None
    """Of correct attempts, as measured; as GEAK has it."""
    speedup_geomean: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


def rows(state: SessionState) -> list[Row]:
    """One row a task in the session's order, and where there are several one over all."""
    tasks = list(state.started.tasks) if state.started else []
    each = [_row(state, task, [task]) for task in tasks]
    return [*each, _row(state, ALL, tasks)] if len(tasks) > 1 else each


def _row(state: SessionState, name: str, tasks: Sequence[str]) -> Row:
    instances = [instance for instance in state.instances.values() if instance.task in tasks]
    attempts = [attempt for instance in instances for attempt in instance.attempts]
    evaluations = [attempt.evaluation for attempt in attempts if attempt.evaluation is not None]
    counted = [evaluation for evaluation in evaluations if evaluation.verdict.counted]
    samples = [_samples(state, task) for task in tasks]
    sampled = [pair for pair in samples if pair[0] > 0]
    k = state.started.instances if state.started else 0
    best = best_of(attempts) if len(tasks) == 1 else None
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
        best_speedup=best.speedup if best and solved else None,
        against=", ".join(
            dict.fromkeys(one.against for each in evaluations for one in each.latency if one.against)
        ),
        best_spread=", ".join(
            f"{one.device} {ratio(one.evaluation.speedup)}"
            for one in sorted(best.spread if best and solved else (), key=lambda one: one.device)
        ),
        call_accuracy=call_accuracy(evaluations),
        execution_accuracy=execution_accuracy(evaluations),
        correct_per_compile=correct_per_compile(evaluations),
        pass_at_1=mean_pass_at_k(sampled, 1) if len(sampled) == len(tasks) else None,
        pass_at_k=mean_pass_at_k(sampled, k) if k and len(sampled) == len(tasks) else None,
        k=k,
        fast_1=fast_p(evaluations, 1.0),
        fast_2=fast_p(evaluations, 2.0),
        speedup_mean=speedup_mean(evaluations),
        speedup_geomean=speedup_geomean(evaluations),
        input_tokens=known_sum([each.input_tokens for each in used]),
        output_tokens=known_sum([each.output_tokens for each in used]),
        cost_usd=sum(costs) if costs else None,
    )


def _samples(state: SessionState, task: str) -> tuple[int, int]:
    """Instances of a task with a counted verdict, and those among them with a correct attempt."""
    verdicts = [
        [
            attempt.verdict
            for attempt in instance.attempts
            if attempt.verdict is not None and attempt.verdict.counted
        ]
        for instance in state.instances.values()
        if instance.task == task
    ]
    sampled = [each for each in verdicts if each]
    return len(sampled), sum(Verdict.CORRECT in each for each in sampled)


def _confirmed(instances: Sequence[InstanceState]) -> int | None:
    """Tasks of these instances with a confirmed attempt; `None` where nothing was examined."""
    said = {
        (instance.task, attempt.confirmation)
        for instance in instances
        for attempt in instance.attempts
        if attempt.confirmation is not Confirmation.NOT_EXAMINED
    }
    return sum(word is Confirmation.CONFIRMED for _, word in said) if said else None


def known_sum(counts: Sequence[int | None]) -> int | None:
    """The sum of the known ones; `None` where none is."""
    known = [each for each in counts if each is not None]
    return sum(known) if known else None


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
    Column("geomean", right=True, if_known=True),
    Column("against", if_known=True),
    Column("by GPU", if_known=True, drop=3),
    Column("tokens in", right=True, drop=1),
    Column("out", right=True, drop=2),
    Column("cost", right=True, if_known=True),
)


def cells(row: Row) -> tuple[str, ...]:
    """A row as the table and Markdown show it."""
    best = row.best_verdict or (f"{row.solved}/{row.tasks} solved" if row.tasks > 1 else UNKNOWN)
    of_all = f"{row.confirmed}/{row.solved} confirmed" if row.confirmed is not None else UNKNOWN
    exam = of_all if row.tasks > 1 else row.best_exam or UNKNOWN
    left_out = f" (+{row.uncounted})" if row.uncounted else ""
    return (
        short_task(row.task),
        best,
        exam,
        f"{row.attempts}{left_out}",
        share(row.call_accuracy),
        share(row.execution_accuracy),
        share(row.pass_at_1),
        share(row.pass_at_k),
        ratio(row.speedup_mean),
        ratio(row.speedup_geomean),
        row.against or UNKNOWN,
        row.best_spread or UNKNOWN,
        count(row.input_tokens),
        count(row.output_tokens),
        money(row.cost_usd),
    )


def share(value: float | None) -> str:
    """A share as percent."""
    return UNKNOWN if value is None else f"{value:.0%}"


def ratio(value: float | None) -> str:
    """A measured speedup."""
    return UNKNOWN if value is None else f"{value:.2f}x"


def above(row: Row) -> str:
    """What a session was, to stand above its table."""
    options = f" ({row.options})" if row.options else ""
    return f"{row.method}{options} with {row.model}, k = {row.k}"


def as_table(sessions: Sequence[Sequence[Row]]) -> str:
    """A table a session, with what it was above."""
    return "\n\n".join(
        f"{each[0].session}: {above(each[0])}\n" + table(HEADS, [cells(row) for row in each], indent=2)
        for each in sessions
    )


def as_markdown(sessions: Sequence[Sequence[Row]]) -> str:
    """The same as GitHub's Markdown."""
    blocks = []
    for each in sessions:
        lines = [f"### {each[0].session}", "", f"{above(each[0])}", ""]
        blocks.append("\n".join([*lines, markdown_table(HEADS, [cells(row) for row in each])]))
    return "\n\n".join(blocks)


def markdown_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """A table as GitHub's Markdown."""
    lines = [
        "| " + " | ".join(column.title for column in columns) + " |",
        "|" + "|".join("---:" if column.right else "---" for column in columns) + "|",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]
    return "\n".join(lines)


def as_csv(sessions: Sequence[Sequence[Row]]) -> str:
    """Every field of every row; unknown is an empty cell."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(Row.__struct_fields__)
    for each in sessions:
        for row in each:
            writer.writerow(["" if value is None else value for value in msgspec.structs.astuple(row)])
    return page.getvalue().rstrip("\n")
