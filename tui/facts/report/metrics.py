"""The field's metrics of a session by task. A value that was not measured is unknown, never 0 or 1."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness import Verdict
from sessions import AttemptState, SessionState
from sessions.events import GIVEN
from sessions.state.metrics import (
    call_accuracy,
    correct_per_compile,
    execution_accuracy,
    fast_p,
    mean_pass_at_k,
    speedup_geomean,
    speedup_mean,
    speedup_sign,
)
from sessions.state.ratio_words import signed
from sessions.state.speed import attempt_speed, baseline_names, timed_evaluation
from sessions.state.winners import bests_by_task, confirmed_tasks
from tui.facts.evaluation.spread import by_gpu_words
from tui.facts.settings_words import option_words
from tui.facts.spending import spending_of
from tui.facts.vocabulary import UNKNOWN

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
    speedup_sign: str = ""
    """Sign of both means: `>=` if a case of these attempts is a lower bound, `<=` for upper bounds, `~` for both."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


def task_metrics(state: SessionState) -> list[TaskMetrics]:
    """Return one row per task, in the session's order; with several tasks also a row over all of them."""
    tasks = list(state.started.tasks) if state.started else []
    bests = bests_by_task(state)
    by_task = [_metrics(state, task, [task], bests) for task in tasks]
    return [*by_task, _metrics(state, ALL, tasks, bests)] if len(tasks) > 1 else by_task


def _metrics(
    state: SessionState, name: str, tasks: Sequence[str], bests: dict[str, AttemptState]
) -> TaskMetrics:
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
    confirmed = confirmed_tasks(instances)
    spent = spending_of(attempts)
    return TaskMetrics(
        session=state.started.session if state.started else "",
        method=state.started.method if state.started else "",
        options=option_words(state.started.options) if state.started else "",
        model=state.started.model if state.started else "",
        task=name,
        attempts=len(counted),
        uncounted=len(evaluations) - len(counted),
        solved=sum(correct > 0 for _, correct in samples),
        confirmed=len(confirmed) if confirmed is not None else None,
        tasks=len(tasks),
        best_attempt=best.attempt if best else None,
        best_verdict=str(best.verdict) if best else None,
        best_exam=str(best.confirmation) if best and solved else None,
        best_speedup=speed.value if best and (speed := attempt_speed(best)) else None,
        against=baseline_names(latency for evaluation in evaluations for latency in evaluation.latency),
        best_spread=by_gpu_words(best) if best and solved else "",
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
        speedup_sign=speedup_sign(timed),
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cost_usd=spent.cost_usd,
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


def ratio(value: float | None, sign: str = "") -> str:
    """Return a measured speedup: `1.42x`, or `>= 1.42x` if a bound is in it."""
    return UNKNOWN if value is None else signed(value, sign)
