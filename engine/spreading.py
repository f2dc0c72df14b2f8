"""Measures an attempt on chosen GPUs: the winner on every GPU with `--spread`, or an attempt that a person names.

Each GPU times the winner against the timing baseline on the same chip, so that chips are compared and not assumed to
be equal. The results are for people.
"""

from __future__ import annotations

import asyncio
from functools import partial

from engine.evaluating import NO_VERDICT
from engine.plan.budget import DeviceUse
from engine.shared import Shared
from harness import Device, StageEntered, StageLeft, Verdict
from harness.failures import first_failure
from sessions.events import WinnerMeasured
from sessions.state.state import AttemptState, Confirmation
from suites import Task


async def spread(shared: Shared, task: Task, key: str) -> None:
    """Measure the instance's correct winner on every GPU that did not measure it yet.

    A measurement in the journal is not repeated.
    """
    best = shared.recorder.state.instances[key].best
    if not shared.plan.spread or best is None:
        return
    winner = shared.recorder.state.attempt(best)
    if winner.verdict is not Verdict.CORRECT or winner.confirmation is Confirmation.NOT_CONFIRMED:
        return
    remaining = [
        device
        for device in shared.judge.devices
        if device.kind != "cpu" and device.name not in {measured.device for measured in winner.spread}
    ]
    try:
        async with asyncio.TaskGroup() as group:
            for device in remaining:
                group.create_task(measure_on(shared, task, winner, device), name=f"spread/{device.name}")
    except ExceptionGroup as failures:
        raise first_failure(failures) from None


async def measure_on(shared: Shared, task: Task, winner: AttemptState, device: Device) -> None:
    """Measure and record; if the judge fails, it is asked once more."""
    at_work = shared.busy.setdefault(device.name, [])

    def on_stage(use: DeviceUse, report: StageEntered | StageLeft) -> None:
        if isinstance(report, StageEntered) and report.stage != "static":
            use.begin()
            if winner.attempt not in at_work:
                at_work.append(winner.attempt)

    source = winner.source or ""
    try:
        async with shared.budget.device_time() as use:
            report = partial(on_stage, use)
            evaluation = await shared.judge.measure(source, task, device=device.name, on_stage=report)
            if evaluation.verdict in NO_VERDICT:
                evaluation = await shared.judge.measure(source, task, device=device.name, on_stage=report)
    finally:
        if winner.attempt in at_work:
            at_work.remove(winner.attempt)
    await shared.recorder.record_durable(
        WinnerMeasured(
            attempt=winner.attempt, device=device.name, evaluation=evaluation, device_s=use.seconds
        )
    )
