"""One rung of a sweep: estimates the time of every variant from few samples, against the kernel that it varies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from engine.errors import JudgeUnable
from engine.judge.bench import Bench
from engine.judge.evaluating import NO_VERDICT, failure_reason
from engine.tuning import mark_kept
from harness import Effort, Evaluation, Verdict
from harness.failures import first_failure
from harness.stages.timing.baselines import Baseline
from harness.stages.timing.rough_estimates import estimated_ratio
from sessions.events import RungEntry, SweepRung, SweptVariant
from suites import Task


async def estimate_all(
    bench: Bench,
    task: Task,
    start: Baseline,
    variants: Sequence[SweptVariant],
    *,
    rung: int,
    effort: Effort,
    most: int,
    passed: dict[str, Evaluation],
) -> SweepRung:
    """Returns the estimates of a rung for all variants of `start`; at most `most` variants are kept.

    `start` is named by its attempt. `passed` maps a source to its last correct evaluation from earlier rungs; this
    call updates it. Attempts and stages are not recorded, because an estimated variant is not an attempt.

    Raises `JudgeUnable` if the judge could estimate none of the variants.
    """
    began = time.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            estimates = [
                group.create_task(
                    _estimate(bench, task, start, variant.source, effort, passed.get(variant.source)),
                    name=f"rung/{number}",
                )
                for number, variant in enumerate(variants)
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
    entries = tuple(_entry(task, *pair) for pair in zip(variants, evaluations, strict=True))
    return SweepRung(
        attempt=start.name,
        rung=rung,
        pairs=effort.pairs,
        entries=mark_kept(entries, most),
        seconds=time.monotonic() - began,
        device_s=sum(estimate.result()[1] for estimate in estimates),
    )


def _entry(task: Task, variant: SweptVariant, evaluation: Evaluation) -> RungEntry:
    return RungEntry(
        changes=variant.changes,
        verdict=str(evaluation.verdict),
        estimate=estimated_ratio(evaluation.rough, task.open_cases),
        samples=sum(estimate.samples for estimate in evaluation.rough),
        why=evaluation.error.first_line if evaluation.error is not None else "",
    )


async def _estimate(
    bench: Bench, task: Task, start: Baseline, source: str, effort: Effort, passed: Evaluation | None
) -> tuple[Evaluation, float]:
    """Estimate one variant; if the judge fails, ask it once more. Returns also the seconds on a device."""
    async with bench.budget.device_time() as use:
        enter = partial(bench.enter, start.name, use)
        once = partial(
            bench.judge.estimate, source, task, start=start, effort=effort, passed=passed, on_stage=enter
        )
        evaluation = await once()
        if evaluation.verdict in NO_VERDICT:
            evaluation = await once()
    return evaluation, use.seconds
