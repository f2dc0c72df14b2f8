"""One candidate on every GPU of a pool at once: chips that should be equal are compared, not assumed to be."""

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
    The evaluations of one candidate on each device of `pool` as one.

    Its verdict, stages and error are those of the first device where it is not correct, else of the first device; its
    latencies are of all devices, each beside the timing baseline on the same chip. There is an overall speedup where every
    case was timed on every device.
    """
    async with asyncio.TaskGroup() as group:
        asked = [
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
    return merged([one.result() for one in asked])


def merged(evaluations: Sequence[Evaluation]) -> Evaluation:
    """See `evaluate_everywhere`; devices in the order of their names."""
    ordered = sorted(evaluations, key=lambda one: one.device)
    leading = next((one for one in ordered if one.verdict is not Verdict.CORRECT), ordered[0])
    latency = tuple(each for one in ordered for each in one.latency)
    cases = dict.fromkeys(name for one in ordered for name in (*_timed_cases(one), *one.not_timed))
    missing = tuple(
        f"{case} on GPU {one.device}" for one in ordered for case in cases if case not in _timed_cases(one)
    )
    speedup, geomean = mean_speedups(latency, missing)
    notes = tuple(dict.fromkeys(f"GPU {one.device}: {note}" for one in ordered for note in one.notes))
    return msgspec.structs.replace(
        leading, latency=latency, speedup=speedup, speedup_geomean=geomean, not_timed=missing, notes=notes
    )


def _timed_cases(evaluation: Evaluation) -> set[str]:
    return {one.case for one in evaluation.latency}
