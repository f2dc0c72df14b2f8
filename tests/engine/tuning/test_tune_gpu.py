"""`tune` on a real GPU: its best attempt is never slower than its start, as measured by the judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.judge.judging import Judge
from engine.models import NoModel
from harness import DevicePool, Verdict, target
from harness.stages.evaluator import LocalEvaluator
from sessions import Home, fold
from suites import baseline_source, load_task
from tests.support.engine.engines import plan, play
from tests.support.judge.gpu import DEVICE, gpu_pool, needs_gpu

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.gpu, pytest.mark.judge, needs_gpu, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("name", ["softmax", "vector_add", "matmul"])
async def test_tune_best_is_at_least_as_fast_as_the_baseline(
    gpu_pool: DevicePool, tmp_path: Path, name: str
) -> None:
    session_plan = plan(
        "20260101-000000-tune-0000", method="tune", model="none", tasks=(f"starter/{name}",), iterations=5
    )
    device = gpu_pool.devices[0]
    judge = Judge(LocalEvaluator(gpu_pool), targets=[target(device.target)], seed=1)
    state = fold(await play(Home(tmp_path), NoModel(), session_plan=session_plan, judge=judge))  # type: ignore[arg-type]
    instance = state.instances[f"{name}#1"]
    start = instance.attempts[0]
    best = state.attempt(instance.best or "")
    assert start.source == baseline_source(load_task(name))
    assert (start.verdict, best.verdict) == (Verdict.CORRECT, Verdict.CORRECT)
    assert start.sweep.target == device.target, "compiled for the target of the device"
    if start.evaluation.speedup is None:
        pytest.skip(f"the judge measured no latency on {DEVICE}, so nothing can be said of speed")
    assert best.evaluation.speedup >= start.evaluation.speedup
