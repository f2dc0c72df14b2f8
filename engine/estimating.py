"""A rung of a sweep: every variant's time estimated from few samples beside the kernel that it varies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from engine.errors import JudgeUnable
from engine.evaluating import NO_VERDICT, why_not
from engine.shared import Shared
from engine.tuning import decided
from harness import Effort, Evaluation, StageEntered, StageLeft, Verdict
from harness.stages.timing.baselines import Baseline
from harness.stages.timing.rough_estimates import estimated_ratio
from sessions.events import RungEntry, SweepRung, SweptVariant
from suites import Task


async def estimate_all(
    shared: Shared,
    task: Task,
    start: Baseline,
    variants: Sequence[SweptVariant],
    *,
    rung: int,
    effort: Effort,
    most: int,
    passed: dict[str, Evaluation],
) -> SweepRung:
    """What a rung finds of each variant against `start`, named by its attempt; at most `most` go on. `JudgeUnable` when it can say nothing of any.

    `passed` holds, by source, what earlier rungs said of those that were right, and gets what this one says.
    Attempts and stages are not recorded: a variant that is only estimated is no attempt.
    """
    began = time.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(
                    _estimated(shared, task, start, variant.source, effort, passed.get(variant.source)),
                    name=f"rung/{number}",
                )
                for number, variant in enumerate(variants)
            ]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    finally:
        for at_work in shared.busy.values():
            if start.name in at_work:
                at_work.remove(start.name)
    found = [one.result() for one in asked]
    if found and all(one.verdict in NO_VERDICT for one in found):
        raise JudgeUnable(
            f"the judge could estimate no variant of {start.name}, the last time: {why_not(found[-1])}"
        )
    for variant, evaluation in zip(variants, found, strict=True):
        if evaluation.verdict is Verdict.CORRECT:
            passed[variant.source] = evaluation
    entries = tuple(_entry(task, *pair) for pair in zip(variants, found, strict=True))
    return SweepRung(
        attempt=start.name,
        rung=rung,
        pairs=effort.pairs,
        entries=decided(entries, most),
        seconds=time.monotonic() - began,
    )


def _entry(task: Task, variant: SweptVariant, evaluation: Evaluation) -> RungEntry:
    return RungEntry(
        changes=variant.changes,
        verdict=str(evaluation.verdict),
        estimate=estimated_ratio(evaluation.rough, task.open_cases),
        samples=sum(one.samples for one in evaluation.rough),
        why=evaluation.error.message if evaluation.error is not None else "",
    )


async def _estimated(
    shared: Shared, task: Task, start: Baseline, source: str, effort: Effort, passed: Evaluation | None
) -> Evaluation:
    """A judge that fails is asked once more."""

    def on_stage(told: StageEntered | StageLeft) -> None:
        at_work = shared.busy.setdefault(told.device, [])
        if isinstance(told, StageEntered) and told.stage != "static" and start.name not in at_work:
            at_work.append(start.name)

    async def once() -> Evaluation:
        return await shared.judge.estimate(
            source, task, start=start, effort=effort, passed=passed, on_stage=on_stage
        )

    evaluation = await once()
    return await once() if evaluation.verdict in NO_VERDICT else evaluation
