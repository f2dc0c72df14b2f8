"""Protects `evaluate` with rough effort: the real interpreter judges first, then a fake clock returns estimates."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness import ROUGH, STAGES, DevicePool, Evaluation, Verdict, evaluate, target
from harness.node.discovery import CPU
from harness.processes.slot import Slot
from harness.stages.modes import Rough
from harness.stages.timing.baselines import Against, Baseline
from harness.stages.timing.conclusions import Timing
from harness.wire.device import Device
from harness.wire.results.latency import RoughTime
from suites import baseline_source, load_task

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

FIRST_RUNG = Rough(ROUGH[0])
GPU = Device(name="0", kind="cuda", target="sm_90")
TASK = load_task("vector_add")
START = baseline_source(TASK)
ESTIMATES = (RoughTime("0", "fp32", 1.25, 0.8, 10, 1, "vector_add#1/1"),)


class WithoutJudge(Slot):
    async def channel(self) -> Any:
        return None


class OneGpu:
    """A pool with one fake GPU; the real interpreter judges before it."""

    devices = (GPU,)

    def __init__(self, pool: DevicePool, gpu: Device = GPU) -> None:
        self._pool, self._gpu = pool, gpu

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    @asynccontextmanager
    async def slot(self, _avoid: str = "", **_: object) -> AsyncIterator[Slot]:
        interpreter = Slot(CPU, self._pool.interpreting)
        try:
            yield WithoutJudge(self._gpu, self._pool.compiling, interpreter=interpreter)
        finally:
            interpreter.discard()

    async def judge_on(self, _slot: Slot, judging: Any) -> Evaluation:
        evaluation: Evaluation = await judging()
        return evaluation

    def telemetry(self, _device: Device) -> None:
        return None


class FakeClock:
    """Returns the same timing for every candidate and records its calls."""

    def __init__(self, timing: Timing) -> None:
        self.timing, self.calls = timing, []  # type: ignore[var-annotated]

    def __call__(self, *_: object, **__: object) -> FakeClock:
        return self

    async def measure(self, _channel: object, source: str, **options: Any) -> Timing:
        self.calls.append((source, options))
        return self.timing


async def evaluate_roughly(
    pool: DevicePool,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    timing: Timing,
    mode: Rough = FIRST_RUNG,
    **changes: Any,
) -> tuple[Evaluation, FakeClock]:
    clock = FakeClock(timing)
    monkeypatch.setattr("harness.stages.trial.Performance", clock)
    gpu = changes.pop("gpu", GPU)
    options: dict[str, Any] = {
        "against": Against(Baseline("vector_add#1/1", START)),
        "targets": [target("sm_90")],
    }
    evaluation = await evaluate(
        source,
        TASK,
        OneGpu(pool, gpu),  # type: ignore[arg-type]
        mode,
        seed=1,
        **(options | changes),
    )
    return evaluation, clock


async def test_variant_that_passes_interpreter_once_has_estimates_and_no_latency(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = START.replace("1024", "512")
    timing = Timing((), "estimated", rough=ESTIMATES)
    evaluation, clock = await evaluate_roughly(pool, monkeypatch, variant, timing)
    assert (evaluation.verdict, evaluation.device, evaluation.rough) == (Verdict.CORRECT, "0", ESTIMATES)
    assert (evaluation.latency, evaluation.speedup, evaluation.speedup_geomean) == ((), None, None)
    assert [stage.name for stage in evaluation.stages] == list(STAGES)
    assert [stage.ok for stage in evaluation.stages] == [True] * 6
    assert evaluation.stages[-1].detail == "estimated"
    assert (evaluation.call, evaluation.execution) == (True, True)
    assert evaluation.not_sampled == {}, "nothing runs at full sizes for a rung"
    ((source, options),) = clock.calls
    assert (source, options["effort"]) == (variant, ROUGH[0])
    assert options["against"].baseline.name == "vector_add#1/1"

    monkeypatch.setattr("harness.processes.pool.Slot.channel", None)  # the next rung needs no interpreter
    next_rung = Rough(ROUGH[1], evaluation)
    again, clock = await evaluate_roughly(pool, monkeypatch, variant, timing, next_rung)
    assert (again.verdict, again.rough, len(clock.calls)) == (Verdict.CORRECT, ESTIMATES, 1)
    assert [stage.ok for stage in again.stages] == [True] * 6
    assert clock.calls[0][1]["effort"] == ROUGH[1]


async def test_wrong_variant_never_reaches_the_gpu(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation, clock = await evaluate_roughly(
        pool, monkeypatch, START.replace("x + y", "x - y"), Timing((), "estimated", rough=ESTIMATES)
    )
    assert (evaluation.verdict, evaluation.rough, clock.calls) == (Verdict.WRONG, (), [])
