"""What becomes of a pool whose GPUs fail: quarantine, the pause of a node, work that goes elsewhere. The probe's word is a fake's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from harness import Device, DevicePool, Evaluation, Verdict
from harness.node.leases import VARIABLE, holders
from harness.processes import quarantine as module
from harness.processes.pool import Slot
from harness.processes.quarantine import DeviceEvent, LeaseAwaited, NodeBack, NodeDown, Quarantined
from harness.processes.servers import ForkServer
from harness.wire.errors import DeviceFailed, NoDeviceLeft, WorkerDied
from tests.support.engines import until
from tests.support.evaluations import correct, failed

pytestmark = pytest.mark.asyncio

GPUS = tuple(
    Device(name=str(number), kind="hip", target="gfx942", package=f"0000:0{number}:00") for number in range(2)
)


class Told:
    """The fake's word of each GPU, and all that the pool told."""

    def __init__(self) -> None:
        self.wrong: dict[str, str] = {}
        self.events: list[DeviceEvent] = []
        self.probed: list[str] = []
        self.changed = asyncio.Event()

    async def probe(self, device: Device) -> str:
        self.probed.append(device.name)
        return self.wrong.get(device.name, "")

    def hear(self, told: DeviceEvent) -> None:
        self.events.append(told)
        self.changed.set()

    async def until(self, kind: type[DeviceEvent]) -> None:
        async with asyncio.timeout(30):
            while not any(isinstance(one, kind) for one in self.events):
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A node of two GPUs, whose servers need not run: nothing real is judged."""

    async def start(self: ForkServer) -> None:
        pass

    monkeypatch.setenv(VARIABLE, str(tmp_path / "leases"))
    monkeypatch.setattr(
        "harness.processes.pool.choose_devices", lambda names: tuple(GPUS[int(name)] for name in names)
    )
    monkeypatch.setattr(ForkServer, "start", start)
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.01)


@asynccontextmanager
async def opened(told: Told, *names: str, slots: int | None = None) -> AsyncIterator[DevicePool]:
    async with DevicePool(
        names, slots=slots, session="20261121-100000-geak-00aa", on_device=told.hear, probe=told.probe
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
        return slot.device.name, await pool.judge_on(slot, ending(verdict))


async def test_a_crash_on_a_healthy_gpu_is_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    async with opened(told, "0", "1") as pool:
        for verdict in (Verdict.CRASH, Verdict.TIMEOUT):
            _, found = await judge(pool, verdict)
            assert found.verdict is verdict
        assert len(told.probed) == 2
        await judge(pool, Verdict.WRONG)
    assert len(told.probed) == 2
    assert told.events == []


@pytest.mark.parametrize("verdict", [Verdict.CRASH, Verdict.TIMEOUT, Verdict.INFRA_ERROR])
async def test_a_gpu_that_fails_its_probe_is_out_and_the_work_goes_elsewhere(verdict: Verdict) -> None:
    told = Told()
    async with opened(told, "0", "1", slots=4) as pool:
        async with pool.slot() as slot:
            told.wrong[slot.device.name] = "3 of 8 sums came back wrong"
            with pytest.raises(DeviceFailed, match=f"GPU {slot.device.name} fails .*3 of 8 sums"):
                await pool.judge_on(slot, ending(verdict))
        (quarantined,) = told.events
        assert quarantined == Quarantined(slot.device.name, "3 of 8 sums came back wrong")
        elsewhere = {(await judge(pool, Verdict.CORRECT))[0] for _ in range(6)}
    assert elsewhere == {"0", "1"} - {slot.device.name}


async def test_a_lost_judge_is_asked_about_its_gpu_too() -> None:
    told = Told()

    async def lost() -> Evaluation:
        raise WorkerDied("the judge is gone")

    async with opened(told, "0", "1") as pool:
        async with pool.slot() as slot:
            with pytest.raises(WorkerDied, match="the judge is gone"):
                await pool.judge_on(slot, lost)
        assert told.probed == [slot.device.name]


async def test_a_reset_of_the_node_pauses_it_and_what_was_judged_meanwhile_counts_against_nobody() -> None:
    told = Told()
    begun, reset = asyncio.Event(), asyncio.Event()

    async def hit() -> Evaluation:
        begun.set()
        await reset.wait()
        return evaluation(Verdict.CRASH)

    async with opened(told, "0", "1", slots=2) as pool, pool.slot() as first, pool.slot() as second:
        told.wrong = {"0": "no answer", "1": "no answer"}
        async with asyncio.TaskGroup() as group:
            bystander = group.create_task(outcome(pool, second, hit))
            await begun.wait()
            culprit = group.create_task(outcome(pool, first, ending(Verdict.TIMEOUT)))
            await told.until(NodeDown)
            waiting = group.create_task(judge(pool, Verdict.CORRECT))
            reset.set()
            assert "a GPU failed while" in await bystander
            assert not waiting.done()
            told.wrong = {}
            assert "fails its health probe: no answer" in await culprit
            assert isinstance(told.events[-1], NodeBack)
            assert not any(isinstance(one, Quarantined) for one in told.events)
            waiting.cancel()
    assert pool.health.lost == {}


async def outcome(pool: DevicePool, slot: Slot, judging: Callable[[], Awaitable[Evaluation]]) -> str:
    """What is said of an evaluation that does not count."""
    with pytest.raises(DeviceFailed) as raised:
        await pool.judge_on(slot, judging)
    return str(raised.value)


async def test_who_waits_for_a_slot_hears_that_every_gpu_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    told = Told()
    told.wrong = {"0": "dead", "1": "dead"}
    async with opened(told, "0", "1", slots=2) as pool:
        async with pool.slot() as first, pool.slot(), asyncio.TaskGroup() as group:
            waiting = [group.create_task(refused(pool)) for _ in range(2)]
            await outcome(pool, first, ending(Verdict.CRASH))
            for one in waiting:
                assert "GPU 0: dead; GPU 1: dead" in await one
        assert "or judge on cpu" in await refused(pool)


async def refused(pool: DevicePool) -> str:
    with pytest.raises(NoDeviceLeft) as raised:
        async with pool.slot():
            pytest.fail("a slot on a lost GPU")
    return str(raised.value)


async def test_a_candidate_that_is_given_up_during_a_pause_does_not_leave_the_pool_shut() -> None:
    told = Told()
    async with opened(told, "0", slots=1) as pool:
        async with pool.slot() as slot:
            told.wrong = {"0": "no answer"}
            given_up = asyncio.create_task(outcome(pool, slot, ending(Verdict.CRASH)))
            await told.until(NodeDown)
            given_up.cancel()
            await asyncio.wait([given_up])
        told.wrong = {}
        async with asyncio.timeout(30):
            assert (await judge(pool, Verdict.CORRECT))[0] == "0"


async def test_two_that_run_on_a_gpu_time_on_it_one_after_the_other() -> None:
    told = Told()
    alone: list[tuple[bool, ...]] = []
    both = asyncio.Barrier(2)

    async def timed(pool: DevicePool, slot: Slot) -> Evaluation:
        await both.wait()
        assert [one.exclusive for one in holders(slot.device)] == [False, False]
        await both.wait()
        async with pool.timing(slot):
            alone.append(tuple(one.exclusive for one in holders(slot.device)))
        return evaluation(Verdict.CORRECT)

    async def judged(pool: DevicePool) -> None:
        async with pool.slot() as slot:
            await pool.judge_on(slot, lambda: timed(pool, slot))

    async with opened(told, "0", slots=2) as pool, asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(judged(pool))
    assert alone == [(True,), (True,)]
    assert holders(GPUS[0]) == ()


async def test_a_wait_for_another_engine_is_told_with_its_name() -> None:
    here, there = Told(), Told()
    async with opened(here, "0") as ours, opened(there, "0") as theirs, theirs.slot() as other:
        async with theirs.timing(other):
            judged = asyncio.create_task(judge(ours, Verdict.CORRECT))
            await here.until(LeaseAwaited)
        await judged
    (waited,) = here.events
    assert isinstance(waited, LeaseAwaited)
    assert "session 20261121-100000-geak-00aa" in str(waited.holders[0])


async def test_a_find_is_confirmed_on_another_gpu_where_one_is_free_and_else_where_there_is_room() -> None:
    async with opened(Told(), "0", "1", slots=2) as pool:
        for found_on in ("0", "1"):
            async with pool.slot(avoid=found_on) as slot:
                assert slot.device.name != found_on
        async with pool.slot() as first, pool.slot(avoid="0" if first.device.name == "1" else "1") as second:
            assert second.device.name != first.device.name, "the only free one is the one to avoid"
        async with pool.slot() as first, pool.slot() as second:
            assert {first.device.name, second.device.name} == {"0", "1"}, "no slot was lost"


async def test_a_slot_on_one_gpu_is_waited_for_and_goes_before_others_who_wait_for_any() -> None:
    async with opened(Told(), "0", "1", slots=2) as pool:
        for name in ("1", "0", "1"):
            async with pool.slot(on=name) as slot:
                assert slot.device.name == name
        got: list[str] = []
        asked = asyncio.Barrier(3)

        async def take(kind: str, on: str = "") -> None:
            await asked.wait()
            async with pool.slot(on=on) as slot:
                got.append(f"{kind} {slot.device.name}")

        async with asyncio.timeout(30), asyncio.TaskGroup() as group, pool.slot(on="0"):
            async with pool.slot(on="1"):
                for kind, on in (("any", ""), ("this", "1")):
                    group.create_task(take(kind, on))
                await asked.wait()
                for _ in range(10):
                    await asyncio.sleep(0)
            await until(lambda: got)
            assert got[0] == "this 1"
        assert [kind.partition(" ")[0] for kind in got] == ["this", "any"]
        async with pool.slot() as first, pool.slot() as second:
            assert {first.device.name, second.device.name} == {"0", "1"}, "no slot was lost"


async def test_nobody_waits_for_a_gpu_in_quarantine() -> None:
    told = Told()
    async with opened(told, "0", "1", slots=2) as pool:
        async with pool.slot(on="1") as held:
            waiting = asyncio.create_task(pool.slot(on="1").__aenter__())
            for _ in range(10):
                await asyncio.sleep(0)
            told.wrong = {"1": "no answer"}
            with pytest.raises(DeviceFailed):
                await pool.judge_on(held, ending(Verdict.CRASH))
            async with asyncio.timeout(30):
                with pytest.raises(WorkerDied, match="GPU 1 is in quarantine: no answer"):
                    await waiting
        async with pool.slot(on="0") as slot:
            assert slot.device.name == "0"
