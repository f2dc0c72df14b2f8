"""Energy a call on a real GPU: between what the device draws when idle and its power cap, for as long as a call takes."""

from __future__ import annotations

import pytest

from harness import WITH_ENERGY, DevicePool, Outcome, Verdict, evaluate, target
from suites import baseline_source, load_task
from tests.support.gpu import gpu_pool, needs_gpu

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.gpu, pytest.mark.judge, needs_gpu, pytest.mark.asyncio(loop_scope="session")]

LEAST_W, MOST_W = 40.0, 1500.0


async def test_a_call_takes_the_energy_of_a_power_that_the_device_can_have(gpu_pool: DevicePool) -> None:
    task = load_task("vector_add")
    device = gpu_pool.devices[0]
    assert device.target is not None
    found = await evaluate(
        baseline_source(task),
        task,
        pool=gpu_pool,
        targets=[target(device.target)],
        seed=1,
        effort=WITH_ENERGY,
    )
    assert found.verdict is Verdict.CORRECT
    assert found.device_before is not None
    if found.device_before.energy_j is None:
        pytest.skip("the device counts no energy")
    for each in found.latency:
        if each.outcome is Outcome.TOO_SHORT:
            assert any("not measured" in note and each.case in note for note in found.notes), found.notes
            continue
        for side in (each.baseline, each.candidate):
            assert side is not None
            assert side.plain_ms is not None
            assert side.energy_mj is not None, found.notes
            assert LEAST_W < side.energy_mj / side.plain_ms < MOST_W
