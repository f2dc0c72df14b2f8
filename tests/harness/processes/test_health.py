"""Protects a pool whose GPUs fail: quarantine, pause of a node, and work that moves to a healthy GPU.

The health probe is fake.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from harness import Device, DevicePool, Evaluation, Verdict
from harness.processes.gpus import quarantine as module
from harness.processes.gpus.quarantine import (
    DeviceEvent,
    Health,
    LeaseAwaited,
    NodeBack,
    NodeDown,
    Quarantined,
    ServerProbe,
)
from harness.processes.slot import Slot
from harness.processes.starting.judge_python import OUR_PYTHON
from harness.processes.starting.nursery import Nursery
from harness.processes.starting.servers import ForkServer
from harness.wire.errors import DeviceFailed, DeviceFull, NoDeviceLeft, WorkerDied
from harness.wire.messages.server import HAS_CONTEXT
from tests.support.engine.engines import until
from tests.support.judge.evaluations import correct, failed
from tests.support.judge.fake_nodes import IdleNode, idle_node, own_leases

__all__ = ["idle_node", "own_leases"]

GPUS = tuple(
    Device(name=str(number), kind="hip", target="gfx942", package=f"0000:0{number}:00") for number in range(2)
)


class FakeProbe:
    """Answers the health probe of each GPU and records the pool's events."""

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        self.events: list[DeviceEvent] = []
        self.probed: list[str] = []
        self.changed = asyncio.Event()

    async def probe(self, device: Device) -> str:
        self.probed.append(device.name)
        return self.problems.get(device.name, "")

    def on_event(self, event: DeviceEvent) -> None:
        self.events.append(event)
        self.changed.set()

    async def until(self, kind: type[DeviceEvent]) -> None:
        async with asyncio.timeout(30):
            while not any(isinstance(event, kind) for event in self.events):
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture(autouse=True)
def two_gpus(idle_node: IdleNode, monkeypatch: pytest.MonkeyPatch) -> None:
    idle_node(*GPUS)
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.01)


@asynccontextmanager
async def opened(
    probe: FakeProbe, *names: str, slots: int | None = None, session: str = "20261121-100000-geak-00aa"
) -> AsyncIterator[DevicePool]:
    async with DevicePool(
        names, slots=slots, session=session, on_device=probe.on_event, probe=probe.probe
    ) as pool:
        yield pool


def evaluation(verdict: Verdict) -> Evaluation:
    return correct() if verdict is Verdict.CORRECT else failed(verdict)


def ending(verdict: Verdict) -> Callable[[], Awaitable[Evaluation]]:
    async def judging() -> Evaluation:
        return evaluation(verdict)

    return judging


async def judge(pool: DevicePool, verdict: Verdict) -> tuple[str, Evaluation]:
    async with pool.slot() as slot:

        async def judging() -> Evaluation:
            async with pool.leases.using(slot):
                return evaluation(verdict)

        return slot.device.name, await pool.judge_on(slot, judging)


async def test_crash_on_healthy_gpu_blames_candidate() -> None:
    probe = FakeProbe()
    async with opened(probe, "0", "1") as pool:
        for verdict in (Verdict.CRASH, Verdict.TIMEOUT):
            _, evaluation = await judge(pool, verdict)
            assert evaluation.verdict is verdict
        assert len(probe.probed) == 2
        await judge(pool, Verdict.WRONG)
    assert len(probe.probed) == 2
    assert probe.events == []


@pytest.mark.parametrize("verdict", [Verdict.CRASH, Verdict.TIMEOUT, Verdict.INFRA_ERROR])
async def test_gpu_that_fails_probe_is_quarantined(verdict: Verdict) -> None:
    probe = FakeProbe()
    async with opened(probe, "0", "1", slots=4) as pool:
        async with pool.slot() as slot:
            probe.problems[slot.device.name] = "3 of 8 sums came back wrong"
            with pytest.raises(DeviceFailed, match=f"GPU {slot.device.name} fails .*3 of 8 sums"):
                await pool.judge_on(slot, ending(verdict))
        (quarantined,) = probe.events
        assert quarantined == Quarantined(slot.device.name, "3 of 8 sums came back wrong")
        elsewhere = {(await judge(pool, Verdict.CORRECT))[0] for _ in range(6)}
    assert elsewhere == {"0", "1"} - {slot.device.name}


async def test_gpu_without_trouble_is_probed_beside_no_timing_of_another_engine() -> None:
    ours, theirs = FakeProbe(), FakeProbe()
    async with opened(ours, "0", "1", slots=2) as pool, opened(theirs, "1") as second:
        async with second.slot() as their_slot, pool.slot(on="0") as slot, asyncio.TaskGroup() as group:
            async with second.leases.timing(their_slot):
                ours.problems = {"0": "no answer"}
                failing = group.create_task(device_failure(pool, slot, ending(Verdict.CRASH)))
                await until(lambda: not pool.health.ready.is_set())
                for _ in range(10):
                    await asyncio.sleep(0)
                assert ours.probed == ["0"]
            await failing
        assert ours.probed == ["0", "1"]
        assert set(pool.health.lost) == {"0"}


async def test_holder_of_a_lease_that_hangs_is_no_reason_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = FakeProbe(), FakeProbe()
    monkeypatch.setattr(module, "PROBE_S", 0.01)
    async with opened(ours, "0", "1", slots=2) as pool, opened(theirs, "1") as second:
        async with second.slot() as their_slot, second.leases.timing(their_slot), pool.slot(on="0") as slot:
            ours.problems = {"0": "no answer"}
            await device_failure(pool, slot, ending(Verdict.CRASH))
        assert ours.probed == ["0", "1"]


class ProbeServer(ForkServer):
    """Starts a fake process that sends these replies to a health probe, each after some seconds."""

    def __init__(self, nursery: Nursery, *replies: tuple[float, bytes]) -> None:
        super().__init__(interpret=False, nursery=nursery)
        self.replies = iter(replies)

    async def spawn(self, role: str, **_: object) -> Any:
        assert role == "health"

        async def receive() -> bytes:
            pause_s, reply = next(self.replies)
            await asyncio.sleep(pause_s)
            return reply

        return SimpleNamespace(end=lambda: None), SimpleNamespace(receive=receive, close=lambda: None)


async def test_probe_waits_as_long_for_a_context_as_a_guest_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver makes one context after another for the whole node, and other engines start many."""
    monkeypatch.setattr(module, "PROBE_S", 0.01)
    nursery = Nursery(OUR_PYTHON)
    queued = ProbeServer(nursery, (0.1, HAS_CONTEXT), (0.0, b"ok"))
    assert await ServerProbe(queued)(GPUS[0]) == ""
    hanging = ProbeServer(nursery, (0.0, HAS_CONTEXT), (60.0, b"ok"))
    assert await ServerProbe(hanging)(GPUS[0]) == "nothing came back from it within 0.01 s"
    monkeypatch.setattr(module, "GUEST_START_S", 0.01)
    endless = ProbeServer(nursery, (60.0, HAS_CONTEXT))
    assert await ServerProbe(endless)(GPUS[0]) == "nothing came back from it within 0.01 s"


async def test_gpu_that_another_engine_fills_is_not_quarantined() -> None:
    probe = FakeProbe()
    async with opened(probe, "0", "1") as pool, pool.slot() as slot:
        full = ProbeServer(pool._nursery, (0.0, b"CUDA out of memory. Tried to allocate 64.00 MiB."))
        pool.health = Health(pool.devices, ServerProbe(full), probe.on_event)
        with pytest.raises(DeviceFull, match="found the GPU's memory full"):
            await pool.judge_on(slot, ending(Verdict.CRASH))
        assert pool.health.lost == {}
        assert probe.events == []


async def test_node_reset_pauses_pool_and_blames_no_candidate() -> None:
    probe = FakeProbe()
    begun, reset = asyncio.Event(), asyncio.Event()

    async def crash_after_reset() -> Evaluation:
        begun.set()
        await reset.wait()
        return evaluation(Verdict.CRASH)

    async with opened(probe, "0", "1", slots=2) as pool, pool.slot() as first, pool.slot() as second:
        probe.problems = {"0": "no answer", "1": "no answer"}
        async with asyncio.TaskGroup() as group:
            bystander = group.create_task(device_failure(pool, second, crash_after_reset))
            await begun.wait()
            culprit = group.create_task(device_failure(pool, first, ending(Verdict.TIMEOUT)))
            await probe.until(NodeDown)
            waiting = group.create_task(judge(pool, Verdict.CORRECT))
            reset.set()
            assert "a GPU failed while" in await bystander
            assert not waiting.done()
            probe.problems = {}
            assert "fails its health probe: no answer" in await culprit
            assert isinstance(probe.events[-1], NodeBack)
            assert not any(isinstance(event, Quarantined) for event in probe.events)
            waiting.cancel()
    assert pool.health.lost == {}


async def device_failure(pool: DevicePool, slot: Slot, judging: Callable[[], Awaitable[Evaluation]]) -> str:
    """Judges and returns the message of the `DeviceFailed` error."""
    with pytest.raises(DeviceFailed) as raised:
        await pool.judge_on(slot, judging)
    return str(raised.value)


async def test_waiters_for_a_slot_learn_that_every_gpu_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    probe = FakeProbe()
    probe.problems = {"0": "dead", "1": "dead"}
    async with opened(probe, "0", "1", slots=2) as pool:
        async with pool.slot() as first, pool.slot(), asyncio.TaskGroup() as group:
            waiting = [group.create_task(slot_refusal(pool)) for _ in range(2)]
            await device_failure(pool, first, ending(Verdict.CRASH))
            for waiter in waiting:
                assert "GPU 0: dead; GPU 1: dead" in await waiter
        assert "or judge on cpu" in await slot_refusal(pool)


async def slot_refusal(pool: DevicePool) -> str:
    with pytest.raises(NoDeviceLeft) as raised:
        async with pool.slot():
            pytest.fail("a slot on a lost GPU")
    return str(raised.value)


async def test_cancelled_judging_during_pause_leaves_pool_open() -> None:
    probe = FakeProbe()
    async with opened(probe, "0", slots=1) as pool:
        async with pool.slot() as slot:
            probe.problems = {"0": "no answer"}
            judging = asyncio.create_task(device_failure(pool, slot, ending(Verdict.CRASH)))
            await probe.until(NodeDown)
            judging.cancel()
            await asyncio.wait([judging])
        probe.problems = {}
        async with asyncio.timeout(30):
            assert (await judge(pool, Verdict.CORRECT))[0] == "0"


async def test_wait_for_lease_reports_holding_session() -> None:
    here, there = FakeProbe(), FakeProbe()
    other = "20261121-110000-geak-00bb"
    async with (
        opened(here, "0") as ours,
        opened(there, "0", session=other) as theirs,
        theirs.slot() as their_slot,
    ):
        async with theirs.leases.timing(their_slot):
            judged = asyncio.create_task(judge(ours, Verdict.CORRECT))
            await here.until(LeaseAwaited)
        await judged
    (waited,) = here.events
    assert isinstance(waited, LeaseAwaited)
    assert f"session {other}" in str(waited.holders[0])


async def test_slot_avoids_a_gpu_if_a_different_gpu_is_free() -> None:
    async with opened(FakeProbe(), "0", "1", slots=2) as pool:
        for found_on in ("0", "1"):
            async with pool.slot(avoid=found_on) as slot:
                assert slot.device.name != found_on
        async with pool.slot() as first, pool.slot(avoid="0" if first.device.name == "1" else "1") as second:
            assert second.device.name != first.device.name, "the only free GPU is the GPU to avoid"
        async with pool.slot() as first, pool.slot() as second:
            assert {first.device.name, second.device.name} == {"0", "1"}, "no slot was lost"


async def test_waiter_for_named_gpu_goes_before_waiter_for_any() -> None:
    async with opened(FakeProbe(), "0", "1", slots=2) as pool:
        for name in ("1", "0", "1"):
            async with pool.slot(on=name) as slot:
                assert slot.device.name == name
        slots: list[str] = []
        all_asked = asyncio.Barrier(3)

        async def take(kind: str, on: str = "") -> None:
            await all_asked.wait()
            async with pool.slot(on=on) as slot:
                slots.append(f"{kind} {slot.device.name}")

        async with asyncio.timeout(30), asyncio.TaskGroup() as group, pool.slot(on="0"):
            async with pool.slot(on="1"):
                for kind, on in (("any", ""), ("this", "1")):
                    group.create_task(take(kind, on))
                await all_asked.wait()
                for _ in range(10):
                    await asyncio.sleep(0)
            await until(lambda: slots)
            assert slots[0] == "this 1"
        assert [kind.partition(" ")[0] for kind in slots] == ["this", "any"]
        async with pool.slot() as first, pool.slot() as second:
            assert {first.device.name, second.device.name} == {"0", "1"}, "no slot was lost"


async def test_slots_go_to_those_who_wait_longest() -> None:
    order: list[str] = []

    async def judge_twice(pool: DevicePool, name: str) -> None:
        for _ in range(2):
            async with pool.slot():
                order.append(name)
                await asyncio.sleep(0)

    async with opened(FakeProbe(), "0", slots=1) as pool, asyncio.timeout(30), asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(judge_twice(pool, name))
    assert order == [*"abcabc"]


async def test_waiter_for_quarantined_gpu_is_refused() -> None:
    probe = FakeProbe()
    async with opened(probe, "0", "1", slots=2) as pool:
        async with pool.slot(on="1") as failing_slot:
            waiting = asyncio.create_task(pool.slot(on="1").__aenter__())
            for _ in range(10):
                await asyncio.sleep(0)
            probe.problems = {"1": "no answer"}
            with pytest.raises(DeviceFailed):
                await pool.judge_on(failing_slot, ending(Verdict.CRASH))
            async with asyncio.timeout(30):
                with pytest.raises(WorkerDied, match="GPU 1 is in quarantine: no answer"):
                    await waiting
        async with pool.slot(on="0") as slot:
            assert slot.device.name == "0"


async def test_nothing_starts_on_a_lent_gpu_until_it_is_returned() -> None:
    async with opened(FakeProbe(), "0", "1", slots=4) as pool:
        async with pool.slot(on="1"):
            pool.lend({"1"})
            assert {(await judge(pool, Verdict.CORRECT))[0] for _ in range(4)} == {"0"}
        assert {(await judge(pool, Verdict.CORRECT))[0] for _ in range(4)} == {"0"}
        with pytest.raises(WorkerDied, match="GPU 1 is lent"):
            async with pool.slot(on="1"):
                pytest.fail("a slot on a lent GPU")
        async with pool.slot() as first, pool.slot() as second:
            assert {first.device.name, second.device.name} == {"0"}
            waiting = asyncio.create_task(judge(pool, Verdict.CORRECT))
            await asyncio.sleep(0)
            assert not waiting.done()
            pool.lend(())
            assert (await waiting)[0] == "1"
        async with pool.slot() as first, pool.slot(first.device.name) as second:
            assert {first.device.name, second.device.name} == {"0", "1"}, "no slot was lost"
