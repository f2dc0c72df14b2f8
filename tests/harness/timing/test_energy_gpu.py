"""Protects energy per call on a real GPU: the mean power lies between idle power and the power cap."""

from __future__ import annotations

import pytest

from harness import DevicePool, Outcome, Verdict, evaluate, target
from harness.stages.timing.baselines import Against
from suites import baseline_source, load_task
from tests.support.judge.gpu import gpu_pool, needs_gpu

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.gpu, pytest.mark.judge, needs_gpu, pytest.mark.asyncio(loop_scope="session")]

LEAST_W, MOST_W = 40.0, 1500.0


async def test_energy_per_call_means_a_plausible_power(gpu_pool: DevicePool) -> None:
    task = load_task("vector_add")
    device = gpu_pool.devices[0]
    evaluation = await evaluate(
        baseline_source(task),
        task,
        gpu_pool,
        targets=[target(device.target)],
        seed=1,
        against=Against(energy=True),
    )
    assert evaluation.verdict is Verdict.CORRECT
    if evaluation.device_before.energy_j is None:
        pytest.skip("the device counts no energy")
    for latency in evaluation.latency:
        if latency.outcome is Outcome.TOO_SHORT:
            assert any("not measured" in note and latency.case in note for note in evaluation.notes), (
                evaluation.notes
            )
            continue
        for side in (latency.baseline, latency.candidate):
            assert side.plain_ms is not None
            assert side.energy_mj is not None, evaluation.notes
            assert LEAST_W < side.energy_mj / side.plain_ms < MOST_W
