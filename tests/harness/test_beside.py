"""A GPU tries the first case while the interpreter has the others: who refuses, and what is left for the next candidate.

The GPU is a second interpreter that calls itself one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness import DevicePool, Evaluation, Verdict, evaluate, target
from harness.node.discovery import CPU
from harness.processes.pool import Slot
from harness.processes.spares import Worker
from harness.stages.timing.conclusions import Timing
from harness.wire.device import Device
from suites import baseline_source, load_task
from tests.support.gpu import small

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

GPU = Device(name="0", kind="cuda", target="sm_90")
TASK = small(load_task("vector_add"))
START = baseline_source(TASK)
LATE = START.replace("    n = x.numel()", "    n = x.numel() - (x.numel() == 1)")
"""Wrong in a case that comes after the first."""


class AsIf(Slot):
    """A GPU's place, whose judge and guests interpret."""

    def __init__(self, pool: DevicePool) -> None:
        super().__init__(GPU, pool.interpreting, interpreter=Slot(CPU, pool.interpreting))
        self.within = Slot(CPU, pool.interpreting)

    async def channel(self) -> Any:
        return await self.within.channel()

    def discard(self) -> None:
        self.within.discard()


class Guests:
    def __init__(self, pool: DevicePool) -> None:
        self.pool, self.taken, self.taking = pool, 0, asyncio.Event()

    async def take(self, role: str, _device: Device) -> Worker:
        self.taken += 1
        self.taking.set()
        return Worker(*await self.pool.interpreting.spawn_for_another(role, cpu_limit_s=60, sandboxed=True))


class OneGpu:
    """A pool with a GPU that is not there."""

    devices = (GPU,)

    def __init__(self, pool: DevicePool) -> None:
        self._pool, self._slot, self.spares = pool, AsIf(pool), Guests(pool)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    @asynccontextmanager
    async def slot(self, _avoid: str = "", *, on: str = "") -> AsyncIterator[Slot]:
        yield self._slot

    async def judge_on(self, _slot: Slot, judging: Any) -> Evaluation:
        found: Evaluation = await judging()
        return found

    def telemetry(self, _device: Device) -> None:
        return None

    @property
    def judge(self) -> Any:
        """The process of the GPU's judge."""
        return self._slot.within.judge

    def close(self) -> None:
        self._slot.discard()
        assert self._slot.interpreter is not None
        self._slot.interpreter.discard()


class Clock:
    def __call__(self, *_: object, alone: Any = None, **__: object) -> Clock:
        self.alone = alone
        return self

    async def measure(self, *_: object, **__: object) -> Timing:
        if self.alone is not None:
            await self.alone
        return Timing((), "timed by nobody")


@pytest.fixture
def gpu(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("harness.stages.slot_evaluation.Performance", Clock())
    made = OneGpu(pool)
    yield made
    made.close()


async def judged(gpu: OneGpu, source: str) -> Evaluation:
    return await evaluate(source, TASK, pool=gpu, targets=[target("sm_90")], seed=1)  # type: ignore[arg-type]


async def test_a_correct_candidate_has_the_interpreters_proofs_and_the_gpus_stages(gpu: OneGpu) -> None:
    found = await judged(gpu, START)
    assert (found.verdict, found.device, gpu.spares.taken) == (Verdict.CORRECT, "0", 1)
    assert [stage.ok for stage in found.stages][:5] == [True] * 5
    assert any(fact.name.startswith("cpu, ") and "replay" in fact.name for fact in found.facts)


async def test_what_the_interpreter_refuses_late_is_refused_and_the_gpus_judge_lives_on(gpu: OneGpu) -> None:
    await judged(gpu, START)
    judge = gpu.judge
    found = await judged(gpu, LATE)
    assert found.verdict is not Verdict.CORRECT
    assert found.error is not None
    assert gpu.spares.taken == 2, "it was tried"
    assert (await judged(gpu, START)).verdict is Verdict.CORRECT
    assert gpu.judge is judge
    assert not judge.ended.done()


async def test_cancelling_ends_both(gpu: OneGpu) -> None:
    judging = asyncio.create_task(judged(gpu, START))
    await gpu.spares.taking.wait()
    judging.cancel()
    await asyncio.wait([judging])
    assert judging.cancelled()
    assert (await judged(gpu, START)).verdict is Verdict.CORRECT
