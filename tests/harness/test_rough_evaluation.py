"""`evaluate` with a rough effort: a real interpreter first, then a clock that only says what few samples would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness import ROUGH, STAGES, DevicePool, Evaluation, Verdict, evaluate, target
from harness.node.discovery import CPU
from harness.processes.pool import Slot
from harness.stages.timing.baselines import Against, Baseline
from harness.stages.timing.conclusions import Timing
from harness.wire.device import Device
from harness.wire.latency import RoughTime
from suites import baseline_source, load_task

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

GPU = Device(name="0", kind="cuda", target="sm_90")
TASK = load_task("vector_add")
START = baseline_source(TASK)
ESTIMATES = (RoughTime("0", "fp32", 1.25, 0.8, 10, 1, "vector_add#1/1"),)


class WithoutJudge(Slot):
    async def channel(self) -> Any:
        return None


class OneGpu:
    """A pool with a GPU that is not there, before which the real interpreter judges."""

    devices = (GPU,)

    def __init__(self, pool: DevicePool, gpu: Device = GPU) -> None:
        self._pool, self._gpu = pool, gpu

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    @asynccontextmanager
    async def slot(self, _avoid: str = "", *, on: str = "") -> AsyncIterator[Slot]:
        interpreter = Slot(CPU, self._pool.interpreting)
        try:
            yield WithoutJudge(self._gpu, self._pool.compiling, interpreter=interpreter)
        finally:
            interpreter.discard()

    async def judge_on(self, _slot: Slot, judging: Any) -> Evaluation:
        found: Evaluation = await judging()
        return found

    def telemetry(self, _device: Device) -> None:
        return None


class Clock:
    """Says of every candidate what it is told to, and keeps what it was asked."""

    def __init__(self, timing: Timing) -> None:
        self.timing, self.asked = timing, []  # type: ignore[var-annotated]

    def __call__(self, *_: object, **__: object) -> Clock:
        return self

    async def measure(self, _channel: object, source: str, **options: Any) -> Timing:
        self.asked.append((source, options))
        return self.timing


async def roughly(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch, source: str, timing: Timing, **changes: Any
) -> tuple[Evaluation, Clock]:
    clock = Clock(timing)
    monkeypatch.setattr("harness.stages.slot_evaluation.Performance", clock)
    gpu = changes.pop("gpu", GPU)
    options: dict[str, Any] = {
        "effort": ROUGH[0],
        "against": Against(Baseline("vector_add#1/1", START)),
        "targets": [target("sm_90")],
    }
    found = await evaluate(
        source,
        TASK,
        pool=OneGpu(pool, gpu),  # type: ignore[arg-type]
        seed=1,
        **(options | changes),
    )
    return found, clock


async def test_a_variant_that_the_interpreter_lets_pass_has_estimates_and_no_latency(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = START.replace("1024", "512")
    found, clock = await roughly(pool, monkeypatch, variant, Timing((), "estimated", rough=ESTIMATES))
    assert (found.verdict, found.device, found.rough) == (Verdict.CORRECT, "0", ESTIMATES)
    assert (found.latency, found.speedup, found.speedup_geomean) == ((), None, None)
    assert [stage.name for stage in found.stages] == list(STAGES)
    assert [stage.ok for stage in found.stages] == [True] * 6
    assert found.stages[-1].detail == "estimated"
    assert (found.call, found.execution) == (True, True)
    assert (found.sampled, found.not_sampled) == ((), {}), "nothing is sampled for a rung"
    ((source, options),) = clock.asked
    assert (source, options["effort"], options["rival"]) == (variant, ROUGH[0], None)
    assert options["against"].baseline.name == "vector_add#1/1"


async def test_what_passed_a_rung_is_not_interpreted_in_the_next(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    timing = Timing((), "estimated", rough=ESTIMATES)
    first, _ = await roughly(pool, monkeypatch, START, timing)
    monkeypatch.setattr("harness.processes.pool.Slot.channel", None)  # no interpreter is to be had
    again, clock = await roughly(pool, monkeypatch, START, timing, passed=first, effort=ROUGH[1])
    assert (again.verdict, again.rough, len(clock.asked)) == (Verdict.CORRECT, ESTIMATES, 1)
    assert [stage.ok for stage in again.stages] == [True] * 6
    assert clock.asked[0][1]["effort"] == ROUGH[1]


async def test_a_variant_that_is_wrong_never_meets_the_gpu(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, clock = await roughly(
        pool, monkeypatch, START.replace("x + y", "x - y"), Timing((), "estimated", rough=ESTIMATES)
    )
    assert (found.verdict, found.rough, clock.asked) == (Verdict.WRONG, (), [])
