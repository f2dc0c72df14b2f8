"""Measures an attempt on chosen GPUs: the winner on every GPU with `--spread`, or an attempt that a person names.

Each GPU times the winner against the timing baseline on the same chip, so that chips are compared and not assumed to
be equal. The results are for people.
"""

from __future__ import annotations

import asyncio

from engine.judge.bench import Bench
from engine.judge.evaluating import NO_VERDICT
from harness import Device, Verdict
from harness.failures import first_failure
from sessions.events import WinnerMeasured
from sessions.state.state import AttemptState, Confirmation
from suites import Task


async def spread(bench: Bench, task: Task, key: str) -> None:
    """Measure the instance's correct winner on every GPU that did not measure it yet.

    A measurement in the journal is not repeated.
    """
    best = bench.recorder.state.instances[key].best
    if best is None:
        return
    winner = bench.recorder.state.attempt(best)
    if winner.verdict is not Verdict.CORRECT or winner.confirmation is Confirmation.NOT_CONFIRMED:
        return
    remaining = [
        device
        for device in bench.judge.devices
        if device.kind != "cpu" and device.name not in {measured.device for measured in winner.spread}
    ]
    try:
        async with asyncio.TaskGroup() as group:
            for device in remaining:
                group.create_task(measure_on(bench, task, winner, device), name=f"spread/{device.name}")
    except ExceptionGroup as failures:
        raise first_failure(failures) from None


async def measure_on(bench: Bench, task: Task, winner: AttemptState, device: Device) -> None:
    """Measure and record; if the judge fails, it is asked once more."""
    source = winner.source or ""
    async with bench.turn(winner.attempt) as (use, enter):
        evaluation = await bench.judge.measure(source, task, device=device.name, on_stage=enter)
        if evaluation.verdict in NO_VERDICT:
            evaluation = await bench.judge.measure(source, task, device=device.name, on_stage=enter)
    await bench.recorder.record_durable(
        WinnerMeasured(
            attempt=winner.attempt, device=device.name, evaluation=evaluation, device_s=use.seconds
        )
    )
