"""Sweeps of an attempt, and their rungs: each estimates every variant from few samples, against the kernel that it varies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from engine.errors import JudgeUnable
from engine.judge.bench import Bench
from engine.judge.evaluating import failure_reason
from engine.judge.judging import own_product, own_target
from engine.tuning.rungs import PlannedRung, mark_kept
from engine.tuning.sweep import RANKED_BY, sweep
from harness import Evaluation, Target, Verdict
from harness.failures import first_failure
from harness.stages.full_sizes import full_size
from harness.stages.modes import Rough
from harness.stages.retries import NO_VERDICT, ask_twice
from harness.stages.timing.baselines import Baseline
from harness.stages.timing.rough_estimates import estimated_ratio
from sessions.events import AttemptSwept, RungEntry, SweepRung, SweepStarted, SweptVariant
from sessions.state.state import AttemptState
from suites import Task
from suites.costs import constraint_of


async def sweep_attempt(
    bench: Bench, task: Task, attempt: str, targets: Sequence[Target], *, most: int
) -> AttemptSwept:
    """Sweep the launch parameters of a judged attempt and record the sweep; it names at most `most` variants.

    Raises `HarnessError` if the judge cannot compile, `BadTask` if the task's `constraint` fails.
    """
    bench.recorder.record(SweepStarted(attempt=attempt))
    target = own_target(bench.judge.devices, targets)
    began = time.monotonic()
    source = bench.recorder.state.attempt(attempt).source or ""
    product = own_product(bench.judge.devices)
    findings = await sweep(
        source,
        task.id,
        target,
        bench.judge.survey(task),
        most=most,
        full_sizes=tuple(full_size(task, case, target, product) for case in task.open_cases),
        is_allowed=constraint_of(task),
    )
    return await bench.recorder.record_durable(
        AttemptSwept(
            attempt=attempt,
            target=target.name,
            tried=findings.tried,
            pruned=findings.pruned,
            ranked_by=RANKED_BY,
            variants=findings.variants,
            seconds=time.monotonic() - began,
        )
    )


def recorded_rung(
    parent: AttemptState, variants: Sequence[SweptVariant], rung: PlannedRung
) -> SweepRung | None:
    """Returns the rung of these variants that the journal has; `None` if it has none.

    An attempt is swept twice, with other variants, if the first half of the attempts brought no better attempt.
    """
    wanted = {variant.changes for variant in variants}
    for recorded in parent.rungs:
        same = {entry.changes for entry in recorded.entries} == wanted
        if same and (recorded.rung, recorded.pairs) == (rung.number, rung.effort.pairs):
            return recorded
    return None


async def estimate_rung(
    bench: Bench,
    task: Task,
    attempt: str,
    variants: Sequence[SweptVariant],
    rung: PlannedRung,
    *,
    passed: dict[str, Evaluation],
    by_case: bool = False,
) -> SweepRung:
    """Estimate and record a rung for all variants of an attempt.

    `passed` maps a source to its last correct evaluation from earlier rungs; this call updates it. Attempts and stages
    are not recorded, because an estimated variant is not an attempt.

    Raises `JudgeUnable` if the judge could estimate none of the variants.
    """
    bench.recorder.record(SweepStarted(attempt=attempt))
    start = Baseline(attempt, bench.recorder.state.attempt(attempt).source or "")
    began = time.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            estimates = [
                group.create_task(
                    _estimate(
                        bench, task, variant.source, Rough(rung.effort, passed.get(variant.source)), start
                    ),
                    name=f"rung/{place}",
                )
                for place, variant in enumerate(variants)
            ]
    except ExceptionGroup as failures:
        raise first_failure(failures) from None
    finally:
        bench.leave(start.name)
    evaluations = [estimate.result()[0] for estimate in estimates]
    if evaluations and all(evaluation.verdict in NO_VERDICT for evaluation in evaluations):
        raise JudgeUnable(
            f"the judge could estimate no variant of {start.name}, the last time: {failure_reason(evaluations[-1])}"
        )
    for variant, evaluation in zip(variants, evaluations, strict=True):
        if evaluation.verdict is Verdict.CORRECT:
            passed[variant.source] = evaluation
    entries = tuple(_entry(task, *pair, by_case=by_case) for pair in zip(variants, evaluations, strict=True))
    return await bench.recorder.record_durable(
        SweepRung(
            attempt=attempt,
            rung=rung.number,
            pairs=rung.effort.pairs,
            entries=mark_kept(entries, rung.keeps),
            seconds=time.monotonic() - began,
            device_s=sum(estimate.result()[1] for estimate in estimates),
        )
    )


def _entry(task: Task, variant: SweptVariant, evaluation: Evaluation, *, by_case: bool) -> RungEntry:
    return RungEntry(
        changes=variant.changes,
        verdict=str(evaluation.verdict),
        estimate=estimated_ratio(evaluation.rough, task.timed_cases),
        samples=sum(estimate.samples for estimate in evaluation.rough),
        by_case={
            estimate.case: estimate.ratio for estimate in evaluation.rough if by_case and estimate.ratio
        },
        why=evaluation.error.first_line if evaluation.error is not None else "",
    )


async def _estimate(
    bench: Bench, task: Task, source: str, rough: Rough, start: Baseline
) -> tuple[Evaluation, float]:
    """Estimate one variant; if the judge fails, ask it once more. Returns also the seconds on a device."""
    async with bench.budget.device_time() as use:
        enter = partial(bench.enter, start.name, use)
        evaluation = await ask_twice(
            partial(bench.judge.estimate, source, task, rough, start=start, on_stage=enter)
        )
    return evaluation, use.seconds
