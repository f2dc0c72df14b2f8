"""Protects a GPU that is full: neighbours cost a candidate no verdict, and its own shortage is said as its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import torch

from harness import Device, DevicePool, ErrorReport, Evaluation, Stage, Verdict
from harness.cases.judged_case import JudgedCase
from harness.node.leases import holders
from harness.processes.slot import Slot
from harness.stages.retries import judge_with_memory, met_full_gpu
from harness.wire.errors import DeviceFull
from harness.wire.messages.guest import OUT_OF_MEMORY
from harness.wire.results.latency import DeviceReading
from harness.wire.results.provenance import Provenance
from harness.worker.oracle.problem import Problem
from tests.support.judge.evaluations import correct, failed
from tests.support.judge.fake_nodes import IdleNode, idle_node, own_leases
from tests.support.tasks.doubled_task import PROBLEM, write_doubled

__all__ = ["idle_node", "own_leases"]
GPU = Device(name="0", kind="cuda", target="sm_90", package="0000:0a:00")
FULL = "CUDA out of memory. Tried to allocate 4.00 GiB."


class Probe:
    """Counts health probes; the GPU is well."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, _device: Device) -> str:
        self.count += 1
        return ""


@pytest.fixture
def probe(idle_node: IdleNode) -> Probe:
    idle_node(GPU)
    return Probe()


@asynccontextmanager
async def opened(probe: Probe, slots: int) -> AsyncIterator[DevicePool]:
    async with DevicePool(("0",), slots=slots, probe=probe) as pool:
        yield pool


def own_shortage() -> Evaluation:
    evaluation = failed(Verdict.CALL_ERROR, FULL)
    return msgspec.structs.replace(evaluation, error=ErrorReport(kind=OUT_OF_MEMORY, message=FULL))


def judges_shortage() -> Evaluation:
    return failed(Verdict.INFRA_ERROR, f"the judge's own work on the GPU: {FULL}")


def timers_shortage() -> Evaluation:
    evaluation = correct()
    performance = Stage(
        "performance", None, 0.1, f"not timed: case fp32: the baseline could not be timed: {FULL}"
    )
    return msgspec.structs.replace(evaluation, stages=(*evaluation.stages[:-1], performance))


def contexts_shortage() -> Evaluation:
    raise DeviceFull("the judge ended: the GPU is out of memory")


class Judging:
    """Returns one evaluation after another; notes who else held the GPU each time."""

    def __init__(self, pool: DevicePool, slot: Slot, *made: Callable[[], Evaluation]) -> None:
        self.pool, self.slot, self.made = pool, slot, list(made)
        self.leases: list[list[bool]] = []
        self.notes: list[str] = []

    async def __call__(self, note: str) -> Evaluation:
        async with self.pool.leases.using(self.slot):
            self.notes.append(note)
            self.leases.append([holder.exclusive for holder in holders(GPU)])
            return self.made[len(self.notes) - 1]()


@pytest.mark.parametrize("shortage", [own_shortage, judges_shortage, timers_shortage, contexts_shortage])
async def test_candidate_short_of_memory_beside_others_is_judged_again_alone(
    shortage: Callable[[], Evaluation], probe: Probe
) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def neighbour(pool: DevicePool) -> None:
        async def judging() -> Evaluation:
            async with pool.leases.using(slot):
                entered.set()
                await leave.wait()
            return correct()

        async with pool.slot() as slot:
            await pool.judge_on(slot, judging)

    async with (
        asyncio.timeout(30),
        opened(probe, 2) as pool,
        pool.slot() as slot,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(neighbour(pool))
        await entered.wait()
        judging = Judging(pool, slot, shortage, correct)
        judged = group.create_task(judge_with_memory(pool, slot, judging))
        await asyncio.sleep(0.1)
        assert len(judging.notes) == 1, "it waits for its neighbour"
        leave.set()
        evaluation = await judged
    assert evaluation.verdict is Verdict.CORRECT
    assert evaluation.error is None
    assert judging.leases == [[False, False], [True]]
    assert "alone" in judging.notes[1]
    assert probe.count == 0, "a full GPU is no broken GPU"


@pytest.mark.parametrize("slots", [1, 2])
async def test_shortage_of_a_candidate_that_was_alone_is_its_own(slots: int, probe: Probe) -> None:
    async with opened(probe, slots) as pool, pool.slot() as slot:
        judging = Judging(pool, slot, own_shortage, own_shortage)
        evaluation = await judge_with_memory(pool, slot, judging)
    assert judging.leases == [[False], [True]], "spares and other engines may hold memory, so never only once"
    assert evaluation.verdict is Verdict.CALL_ERROR
    assert evaluation.error.kind == OUT_OF_MEMORY
    assert evaluation.error.message == f"{FULL} (no other candidate was on the GPU)"


async def test_memory_of_idle_judges_of_another_engine_is_not_blamed_on_a_candidate(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle judges hold no lease, so nothing but the memory in use shows them."""

    class Idle:
        provenance = Provenance()

        async def state(self) -> DeviceReading:
            return DeviceReading(memory_used_bytes=41 << 30)

        async def close(self) -> None:
            pass

    monkeypatch.setattr(DevicePool, "telemetry", lambda *_: Idle())
    async with opened(probe, 1) as pool, pool.slot() as slot:
        judging = Judging(pool, slot, own_shortage, own_shortage)
        evaluation = await judge_with_memory(pool, slot, judging)
        assert evaluation.verdict is Verdict.UNSUPPORTED
        assert evaluation.error.message.endswith("but other processes held 41 GiB)")
        Idle.provenance = Provenance(partition="MIG")
        judging = Judging(pool, slot, own_shortage, own_shortage)
        evaluation = await judge_with_memory(pool, slot, judging)
        assert evaluation.verdict is Verdict.CALL_ERROR, "the driver counts the memory of all instances"
        Idle.provenance = Provenance()
        judging = Judging(pool, slot, contexts_shortage, contexts_shortage)
        with pytest.raises(DeviceFull, match=r"other processes held 41 GiB"):
            await judge_with_memory(pool, slot, judging)


async def test_other_failures_are_judged_once(probe: Probe) -> None:
    assert not met_full_gpu(correct())
    assert not met_full_gpu(failed(Verdict.COMPILE_ERROR, "out of resource: shared memory"))
    async with opened(probe, 2) as pool, pool.slot() as slot:
        judging = Judging(pool, slot, lambda: failed(Verdict.WRONG))
        evaluation = await judge_with_memory(pool, slot, judging)
    assert (evaluation.verdict, len(judging.notes)) == (Verdict.WRONG, 1)


@pytest.mark.parametrize("line", ["    return {", "    return 2 * x"])
def test_full_device_is_no_fault_of_the_task(tmp_path: Path, line: str) -> None:
    full = PROBLEM.replace(line, f"    raise torch.OutOfMemoryError\n{line}", 1)
    task = write_doubled(tmp_path, problem=full)
    problem, case = Problem(task), JudgedCase(task.cases[0])
    with pytest.raises(torch.OutOfMemoryError):
        problem.oracle(case.case, problem.given(case, 1, 0))
