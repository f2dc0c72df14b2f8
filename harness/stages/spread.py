"""One candidate on every GPU of a pool at once, to compare chips that should be equal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from harness.processes.pool import DevicePool
from harness.stages.timing.baselines import USUAL, Against
from harness.stages.timing.conclusions import mean_speedups
from harness.wire.device import Target
from harness.wire.effort import WHOLE, Effort
from harness.wire.evaluation import Evaluation, Verdict
from suites.task import Task

from .cascade import evaluate


async def evaluate_everywhere(
    candidate: str,
    task: Task,
    *,
    pool: DevicePool,
    targets: Sequence[Target],
    seed: int,
    against: Against = USUAL,
    effort: Effort = WHOLE,
) -> Evaluation:
    """
    One evaluation made of a candidate's evaluations on each device of `pool`.

    Verdict, stages and error are from the first device where the candidate is not correct, else from the first device. Latencies
    are from all devices, each with the timing baseline on the same chip. There is an overall speedup only if every case was
    timed on every device.
    """
    async with asyncio.TaskGroup() as group:
        evaluating = [
            group.create_task(
                evaluate(
                    candidate,
                    task,
                    pool=pool,
                    targets=targets,
                    seed=seed,
                    against=against,
                    on=device.name,
                    effort=effort,
                ),
                name=f"spread/{device.name}",
            )
            for device in pool.devices
        ]
    return merge_evaluations([evaluation.result() for evaluation in evaluating])


def merge_evaluations(evaluations: Sequence[Evaluation]) -> Evaluation:
    """See `evaluate_everywhere`; devices in the order of their names."""
    ordered = sorted(evaluations, key=lambda evaluation: evaluation.device)
    leading = next((each for each in ordered if each.verdict is not Verdict.CORRECT), ordered[0])
    latencies = tuple(latency for each in ordered for latency in each.latency)
    cases = dict.fromkeys(case for each in ordered for case in (*_timed_cases(each), *each.not_timed))
    missing = tuple(
        f"{case} on GPU {each.device}" for each in ordered for case in cases if case not in _timed_cases(each)
    )
    speedup, geomean = mean_speedups(latencies, missing)
    notes = tuple(dict.fromkeys(f"GPU {each.device}: {note}" for each in ordered for note in each.notes))
    return msgspec.structs.replace(
        leading, latency=latencies, speedup=speedup, speedup_geomean=geomean, not_timed=missing, notes=notes
    )


def _timed_cases(evaluation: Evaluation) -> list[str]:
    return [latency.case for latency in evaluation.latency]
