"""One candidate on every GPU of a pool at once, to compare chips that should be equal."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from harness.processes.pool import DevicePool
from harness.stages.timing.baselines import USUAL, Against
from harness.stages.timing.conclusions import mean_speedups
from harness.wire.device import Target
from harness.wire.errors import HarnessError
from harness.wire.results.evaluation import Evaluation, Verdict
from harness.wire.results.latency import Bound
from harness.wire.results.provenance import same_provenance
from suites.task import Task

from .cascade import evaluate
from .modes import Attempt
from .sheet import OnEvent


async def evaluate_everywhere(
    candidate: str,
    task: Task,
    pool: DevicePool,
    *,
    targets: Sequence[Target],
    seed: int,
    against: Against = USUAL,
    on_event: OnEvent | None = None,
) -> Evaluation:
    """One evaluation made of a candidate's evaluations on each device of `pool`.

    Verdict, stages and error are from the first device where the candidate is not correct, else from the first device. Latencies
    are from all devices, each with the timing baseline on the same chip. The overall speedup is the mean over all cases and
    devices that have a ratio. Raises `HarnessError` if the devices are not of one product and partition.
    """
    first, *others = [await pool.provenance(device) for device in pool.devices]
    different = [provenance for provenance in others if not same_provenance(provenance, first)]
    if different:
        products = ", ".join(
            dict.fromkeys(f"{gpu.product} {gpu.partition}".rstrip() for gpu in (first, *different))
        )
        raise HarnessError(
            f"the GPUs are not equal ({products}), so no speedup covers them all; name GPUs of one product"
        )
    evaluate_on = partial(
        evaluate, candidate, task, pool, targets=targets, seed=seed, against=against, on_event=on_event
    )
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(evaluate_on(mode=Attempt(device.name)), name=f"spread/{device.name}")
            for device in pool.devices
        ]
    return merge_evaluations([task.result() for task in tasks])


def merge_evaluations(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Return one evaluation of a candidate that was judged on several GPUs, with the times of all, in the order of their names.

    Everything else is that of the first GPU that does not accept the candidate, or of the first one. See `evaluate_everywhere`.
    """
    ordered = sorted(evaluations, key=lambda evaluation: evaluation.device)
    failed = [evaluation for evaluation in ordered if evaluation.verdict is not Verdict.CORRECT]
    latencies = tuple(latency for evaluation in ordered for latency in evaluation.latency)
    cases = dict.fromkeys(
        case for evaluation in ordered for case in (*_timed_cases(evaluation), *evaluation.not_timed)
    )
    notes = dict.fromkeys(
        f"GPU {evaluation.device}: {note}" for evaluation in ordered for note in evaluation.notes
    )
    missing = [
        (case, evaluation.device)
        for evaluation in ordered
        for case in cases
        if case not in _timed_cases(evaluation)
    ]
    reasons = [
        f"GPU {evaluation.device}: {evaluation.why_not_timed}"
        for evaluation in ordered
        if evaluation.why_not_timed
    ]
    speedup, geomean = mean_speedups(latencies)
    arithmetic = [(evaluation, evaluation.speedup_ci) for evaluation in ordered]
    geometric = [(evaluation, evaluation.speedup_geomean_ci) for evaluation in ordered]
    weighted = [(evaluation, evaluation.speedup_weighted_ci) for evaluation in ordered]
    return msgspec.structs.replace(
        (failed or ordered)[0],
        latency=latencies,
        speedup=speedup,
        speedup_ci=_join_intervals(arithmetic, float, float),
        speedup_geomean=geomean,
        speedup_geomean_ci=_join_intervals(geometric, math.log, math.exp),
        speedup_weighted_ci=_join_intervals(weighted, math.log, math.exp),
        not_timed=tuple(case for case, _ in missing),
        not_timed_on=tuple(device for _, device in missing),
        why_not_timed="; ".join(reasons),
        notes=tuple(notes),
    )


def _join_intervals(
    intervals: Sequence[tuple[Evaluation, tuple[float, float] | None]],
    scale: Callable[[float], float],
    unscale: Callable[[float], float],
) -> tuple[float, float] | None:
    """The interval of the mean over the exact cases of all GPUs; `None` if no GPU has one.

    The mean is arithmetic on the scale of `scale`. Processes of different GPUs have independent errors.
    """
    exact, below, above = [], [], []
    for evaluation, interval in intervals:
        if interval is not None:
            values = [
                scale(latency.speedup)
                for latency in evaluation.latency
                if latency.speedup is not None and latency.bound is Bound.NONE
            ]
            exact += values
            below.append(math.fsum(values) - len(values) * scale(interval[0]))
            above.append(len(values) * scale(interval[1]) - math.fsum(values))
    if not exact:
        return None
    low, high = (math.fsum(exact) + end for end in (-math.hypot(*below), math.hypot(*above)))
    return unscale(low / len(exact)), unscale(high / len(exact))


def _timed_cases(evaluation: Evaluation) -> list[str]:
    return [latency.case for latency in evaluation.latency]
