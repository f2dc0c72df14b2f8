"""Protects judging on a GPU and in the interpreter at the same time: who refuses, and what remains for the next candidate.

The GPU is fake: a second interpreter plays it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness import ROUGH, STAGES, DevicePool, Evaluation, Verdict, evaluate, target
from harness.node.discovery import CPU
from harness.node.leases import holders
from harness.processes.slot import Slot
from harness.processes.starting.spares import Worker
from harness.stages.modes import Rough
from harness.stages.retries import JudgeAgain
from harness.stages.timing.baselines import Against, Baseline
from harness.stages.timing.conclusions import Timing
from harness.wire.device import Device
from harness.wire.results.latency import Latency, RoughTime
from suites import Task, baseline_source, load_task
from suites.source.package import PackageView
from tests.support.judge.fake_nodes import own_leases
from tests.support.judge.gpu import small

__all__ = ["own_leases"]
pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

GPU = Device(name="0", kind="cuda", target="sm_90", package="0000:0a:00")
VECTOR_ADD = small(load_task("vector_add"))
TASK = msgspec.structs.replace(VECTOR_ADD, cases=VECTOR_ADD.cases[:3])
START = baseline_source(TASK)
ONLY_INTERPRETED = START.replace("x + y, mask", "x + y * ONE, mask").replace(
    "\n\n@triton", "\nONE = 1.0\n\n\n@triton", 1
)
LATE = START.replace("    n = x.numel()", "    n = x.numel() - (x.numel() == 1)")
"""Wrong only in a case after the first."""


class FakeGpuSlot(Slot):
    """A slot that claims a GPU; its judge and guests use the interpreter."""

    def __init__(self, pool: DevicePool) -> None:
        super().__init__(GPU, pool.interpreting, interpreter=Slot(CPU, pool.interpreting))
        self.interpreted = Slot(CPU, pool.interpreting)

    async def channel(self) -> Any:
        return await self.interpreted.channel()

    def discard(self) -> None:
        self.interpreted.discard()


class Guests:
    def __init__(self, pool: DevicePool) -> None:
        self.pool, self.taken, self.take_started = pool, 0, asyncio.Event()

    async def take(self, role: str, _device: Device, _package: PackageView | None = None) -> Worker:
        self.taken += 1
        self.take_started.set()
        return Worker(*await self.pool.interpreting.spawn_for_another(role, cpu_limit_s=60, sandboxed=True))


class OneGpu:
    """A pool with one fake GPU."""

    devices = (GPU,)

    def __init__(self, pool: DevicePool) -> None:
        self._pool, self._slot, self.spares = pool, FakeGpuSlot(pool), Guests(pool)
        self.expected_timers = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    @asynccontextmanager
    async def slot(self, _avoid: str = "", **_: object) -> AsyncIterator[Slot]:
        yield self._slot

    async def judge_on(self, _slot: Slot, judging: Any) -> Evaluation:
        evaluation: Evaluation = await judging()
        return evaluation

    def telemetry(self, _device: Device) -> None:
        return None

    def expect_timer(self, slot: Slot) -> None:
        assert slot is self._slot
        self.expected_timers += 1

    def is_own(self, target: str) -> bool:
        return target == GPU.target

    @property
    def judge(self) -> Any:
        """The process of the GPU's judge."""
        return self._slot.interpreted.judge

    @property
    def interpreter(self) -> Slot:
        assert self._slot.interpreter is not None
        return self._slot.interpreter

    def close(self) -> None:
        self._slot.discard()
        self.interpreter.discard()


class FakeClock:
    """Takes the place of `Performance`: every timing has the same result, or what `times` returns for its task."""

    def __init__(self) -> None:
        self.timing = Timing((), "not timed in this test")
        self.times: Callable[[Task], Timing] = lambda _: self.timing
        self.sources: list[str] = []
        self.options: list[dict[str, Any]] = []
        self.began = asyncio.Event()

    def __call__(self, _pool: object, _slot: object, task: Task, *_: object, **options: Any) -> FakeClock:
        self.task, self.alone = task, options["alone"]
        return self

    async def measure(self, _channel: object, source: str, **options: Any) -> Timing:
        self.began.set()
        assert [holder.exclusive for holder in holders(GPU)] == [False]
        if self.alone is not None:
            await self.alone
        self.sources.append(source)
        self.options.append(options)
        return self.times(self.task)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr("harness.stages.trial.Performance", fake)
    return fake


@pytest.fixture
def gpu(pool: DevicePool, clock: FakeClock, own_leases: Path) -> Any:
    fake = OneGpu(pool)
    yield fake
    fake.close()


async def judge(gpu: OneGpu, source: str, task: Task = TASK, **options: Any) -> Evaluation:
    return await evaluate(source, task, gpu, targets=[target("sm_90")], seed=1, **options)  # type: ignore[arg-type]


async def test_refusal_by_interpreter_or_compiler_keeps_gpu_judge_alive(gpu: OneGpu) -> None:
    await judge(gpu, START)
    judge_process = gpu.judge
    evaluation = await judge(gpu, LATE)
    assert evaluation.verdict is not Verdict.CORRECT
    assert evaluation.error is not None
    assert gpu.spares.taken == 2, "it was tried"
    evaluation = await judge(gpu, ONLY_INTERPRETED)
    assert (evaluation.verdict, evaluation.device) == (Verdict.COMPILE_ERROR, "0"), "it is never called"
    assert gpu.judge is judge_process
    assert (await judge(gpu, START)).verdict is Verdict.CORRECT
    assert gpu.judge is judge_process
    assert not judge_process.ended.done()


async def test_error_of_host_code_is_that_of_the_call_and_not_of_the_compiler(gpu: OneGpu) -> None:
    evaluation = await judge(gpu, START.replace("    n = x.numel()", "    n = x.no_such_method()"))
    assert (evaluation.verdict, evaluation.error.kind) == (Verdict.CALL_ERROR, "exception")
    assert "AttributeError" in evaluation.error.message
    assert evaluation.resources == {}
    assert gpu.spares.taken == 1


async def test_cancelling_ends_interpreter_and_gpu(gpu: OneGpu) -> None:
    judging = asyncio.create_task(judge(gpu, START))
    await gpu.spares.take_started.wait()
    judging.cancel()
    await asyncio.wait([judging])
    assert judging.cancelled()
    assert (await judge(gpu, START)).verdict is Verdict.CORRECT


async def test_lost_interpreter_does_not_cost_the_verdict_of_the_gpu(
    gpu: OneGpu, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object) -> None:
        await clock.began.wait()
        raise JudgeAgain("the process at full sizes was killed by SIGKILL, by no limit of the judge")

    monkeypatch.setattr("harness.stages.trial.run_at_full_sizes", lost)
    evaluation = await judge(gpu, START)
    assert (evaluation.verdict, evaluation.device) == (Verdict.CORRECT, "0")
    assert gpu.spares.taken == 1, "it is judged once"
    facts = {fact.name: fact.value for fact in evaluation.facts}
    assert facts["interpreter"] == "its processes failed: no access was checked"


@pytest.mark.parametrize("idle", [1, 2])
async def test_a_case_that_the_baseline_leaves_undone_is_not_timed_and_does_not_count(
    gpu: OneGpu, clock: FakeClock, idle: int
) -> None:
    cases = [
        msgspec.structs.replace(case, no_baseline="it stores with one program" if place < idle else "")
        for place, case in enumerate(TASK.open_cases[:2])
    ]
    clock.times = lambda task: Timing(
        tuple(
            Latency("0", case.name, 1.0, 0.5, speedup=2.0, ci=(1.9, 2.1), confirmed="tape")
            for case in task.open_cases
        ),
        "timed",
    )
    evaluation = await judge(gpu, START, msgspec.structs.replace(TASK, cases=tuple(cases)))
    assert [latency.case for latency in evaluation.latency] == [case.name for case in cases[idle:]]
    assert (evaluation.in_part, evaluation.not_timed) == ("", ())
    assert f"{cases[0].name}: not timed: it stores with one program" in evaluation.notes
    assert evaluation.speedup == (pytest.approx(2.0) if idle < len(cases) else None)


# A rung of a sweep: the interpreter judges first, then the clock returns estimates.

ESTIMATES = (RoughTime("0", "fp32", 1.25, 0.8, 10, 1, "vector_add#1/1"),)
AGAINST = Against(Baseline("vector_add#1/1", START))


async def test_variant_that_passes_interpreter_once_has_estimates_and_no_latency(
    gpu: OneGpu, clock: FakeClock
) -> None:
    variant = START.replace("1024", "512")
    clock.timing = Timing((), "estimated", rough=ESTIMATES)
    evaluation = await judge(gpu, variant, mode=Rough(ROUGH[0]), against=AGAINST)
    gpu.close()
    again = await judge(gpu, variant, mode=Rough(ROUGH[1], evaluation), against=AGAINST)
    assert gpu.interpreter.judge is None, "the next rung needs no interpreter"
    for rung in (evaluation, again):
        assert (rung.verdict, rung.device, rung.rough) == (Verdict.CORRECT, "0", ESTIMATES)
        assert (rung.latency, rung.speedup, rung.speedup_geomean) == ((), None, None)
        assert [(stage.name, stage.ok) for stage in rung.stages] == [(name, True) for name in STAGES]
        assert (rung.call, rung.execution, rung.stages[-1].detail) == (True, True, "estimated")
        assert rung.not_sampled == {}, "nothing runs at full sizes for a rung"
    assert clock.sources == [variant] * 2
    assert [options["effort"] for options in clock.options] == list(ROUGH[:2])
    assert {options["against"].baseline.name for options in clock.options} == {"vector_add#1/1"}
    assert gpu.spares.taken == 0, "no guest of the GPU judges a variant"


async def test_wrong_variant_never_reaches_the_gpu(gpu: OneGpu, clock: FakeClock) -> None:
    source = START.replace("x + y", "x - y")
    evaluation = await judge(gpu, source, mode=Rough(ROUGH[0]), against=AGAINST)
    assert (evaluation.verdict, evaluation.rough, clock.sources) == (Verdict.WRONG, (), [])
