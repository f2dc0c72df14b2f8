"""The field's metrics of a session by task. A value that was not measured is unknown, never 0 or 1."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from harness import Verdict
from sessions import AttemptState, SessionState
from sessions.metrics.accuracy import mean_pass_at_k, share
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.selection import best_rows, counted_rows, grouped
from sessions.metrics.speedup import fast_p, geomean_speedup, mean_speedup
from sessions.state.speed import joint_sign
from sessions.state.winners import bests_by_task, confirmed_tasks
from tui.facts.evaluation.spread import by_gpu_words
from tui.facts.settings_words import option_words
from tui.facts.spending import spending_of

ALL = "all"
"""Name of the row over all tasks of a session."""


class TaskMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of one task of a session, or of all its tasks. Shares are 0 to 1; `None` means unknown."""

    session: str
    method: str
    options: str = ""
    """Method options that differ from the defaults, in words."""
    model: str
    task: str
    attempts: int
    """Attempts that the metrics count (`sessions.metrics.selection`)."""
    uncounted: int
    """Judged attempts that the metrics leave out."""
    ran: float | None = None
    """Share of these attempts that import and run on the first case."""
    correct: float | None = None
    """Share of these attempts that are correct."""
    solved: int
    """Tasks with a correct attempt."""
    confirmed: int | None = None
    """Tasks with a confirmed best attempt; `None` if no exam ran."""
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
    """Share of the tasks with an attempt that imports and runs on the first case."""
    execution_accuracy: float | None = None
    """Share of the tasks with a correct best attempt."""
    correct_per_compile: float | None = None
    """Correct tasks of those with an attempt that runs."""
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
    speedup_sign: str = ""
    """Sign of both means: `>=` if a case of these attempts is a lower bound, `<=` for upper bounds, `~` for both."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


def task_metrics(state: SessionState, rows: Sequence[AttemptRow]) -> list[TaskMetrics]:
    """Return one row per task, in the session's order; with several tasks also a row over all of them.

    `rows` are those of all judged attempts.
    """
    tasks = list(state.started.tasks) if state.started else []
    bests = bests_by_task(state)
    rows_by_task = grouped(rows, lambda row: row.task)
    by_task = [_metrics(state, task, [task], bests, rows_by_task.get(task, [])) for task in tasks]
    return [*by_task, _metrics(state, ALL, tasks, bests, rows)] if len(tasks) > 1 else by_task


def _metrics(
    state: SessionState,
    name: str,
    tasks: Sequence[str],
    bests: dict[str, AttemptState],
    all_rows: Sequence[AttemptRow],
) -> TaskMetrics:
    attempts = [
        attempt
        for instance in state.instances.values()
        if instance.task in tasks
        for attempt in instance.attempts
    ]
    judged = [attempt.judged for attempt in attempts if attempt.judged is not None]
    rows = counted_rows(all_rows).rows
    best_of_tasks = best_rows(rows)
    timed = [row for row in best_of_tasks if row.correct and row.speed is not None]
    is_mixed = len({row.provenance for row in timed}) > 1
    speedups = [row.headline if row.correct else 0.0 for row in best_of_tasks if not is_mixed]
    samples = _samples(rows)
    k = state.started.instances if state.started else 0
    best = bests.get(tasks[0]) if len(tasks) == 1 else None
    solved = best is not None and best.verdict is Verdict.CORRECT
    confirmed = confirmed_tasks(state, tasks)
    spent = spending_of(attempts)
    return TaskMetrics(
        session=state.started.session if state.started else "",
        method=state.started.method if state.started else "",
        options=option_words(state.started.options) if state.started else "",
        model=state.started.model if state.started else "",
        task=name,
        attempts=len(rows),
        uncounted=len(all_rows) - len(rows),
        ran=share(row.call for row in rows),
        correct=share(row.correct for row in rows),
        solved=len({row.task for row in all_rows if row.correct and row.independent}),
        confirmed=len(confirmed) if confirmed is not None else None,
        tasks=len(tasks),
        best_attempt=best.attempt if best else None,
        best_verdict=str(best.verdict) if best else None,
        best_exam=str(best.confirmation) if best and solved else None,
        best_speedup=speed.value if best and (speed := best.speed) else None,
        against=", ".join(dict.fromkeys(chain.from_iterable(facts.against for facts in judged))),
        best_spread=by_gpu_words(best) if best and solved else "",
        call_accuracy=share(row.call for row in best_of_tasks),
        execution_accuracy=share(row.correct for row in best_of_tasks),
        correct_per_compile=share(row.correct for row in best_of_tasks if row.call),
        pass_at_1=mean_pass_at_k(samples, 1),
        pass_at_k=mean_pass_at_k(samples, k) if k else None,
        k=k,
        fast_1=fast_p(speedups, 1.0),
        fast_2=fast_p(speedups, 2.0),
        speedup_mean=None if is_mixed else mean_speedup(row.geak for row in timed if row.geak is not None),
        speedup_geomean=geomean_speedup(value for value in speedups if value),
        speedup_sign=joint_sign(row.speed.sign for row in timed if row.speed is not None),
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cost_usd=spent.cost_usd,
    )


def _samples(rows: Sequence[AttemptRow]) -> list[tuple[int, int]]:
    """Samples and correct samples of each task. A sample is one instance that no person added."""
    independent = [row for row in rows if row.independent]
    bests = best_rows(independent, lambda row: (row.task, row.instance))
    by_task = grouped(bests, lambda row: row.task).values()
    return [(len(own), sum(row.correct for row in own)) for own in by_task]
