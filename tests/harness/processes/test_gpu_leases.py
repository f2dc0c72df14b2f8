"""Protects when slots of one GPU hold its lease: not while nothing launches, and a timing that waits goes first."""

from __future__ import annotations

import asyncio

import pytest

from harness import Device
from harness.node.leases import holders, is_awaited_alone
from harness.processes.gpus import gpu_leases as module
from harness.processes.gpus.gpu_leases import GpuLeases
from harness.processes.slot import Neighbours, Slot
from harness.processes.starting.servers import ForkServer
from tests.support.engine.engines import until
from tests.support.judge.fake_nodes import own_leases

__all__ = ["own_leases"]
pytestmark = pytest.mark.usefixtures("own_leases")

GPU = Device(name="0", kind="cuda", address="0000:0a:00.0", package="0000:0a:00")


@pytest.fixture
def leases() -> GpuLeases:
    return GpuLeases("mine", lambda _device, _holders: pytest.fail("our own slots are no news"))


def slot() -> Slot:
    return Slot(GPU, ForkServer(interpret=False))


async def test_slot_that_launches_nothing_has_no_lease(leases: GpuLeases) -> None:
    ours, theirs = slot(), slot()
    async with leases.using(ours):
        assert len(holders(GPU)) == 1
        async with leases.launching_nothing(ours), leases.timing(theirs):
            assert [holder.exclusive for holder in holders(GPU)] == [True]
        assert [holder.exclusive for holder in holders(GPU)] == [False]
    assert holders(GPU) == ()


async def test_candidate_between_calls_lets_a_timing_pass_that_waited(
    leases: GpuLeases, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = slot(), slot()
    timed = asyncio.Event()

    async def time() -> None:
        async with leases.timing(theirs):
            timed.set()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group, leases.using(ours):
        await leases.let_timing_pass(ours)
        group.create_task(time())
        await until(lambda: is_awaited_alone(GPU))
        await leases.let_timing_pass(ours)
        assert not timed.is_set(), "a candidate that is nearly judged joins the batch"
        monkeypatch.setattr(module, "TIMING_WAITS_S", 0.0)
        await leases.let_timing_pass(ours)
        assert timed.is_set()
        assert len(holders(GPU)) == 1, "it has its lease again"


async def test_slot_that_is_alone_keeps_its_lease_until_it_has_timed(leases: GpuLeases) -> None:
    ours = slot()

    async def end() -> None:
        assert [holder.exclusive for holder in holders(GPU)] == [False]

    async with leases.alone(ours):
        async with leases.using(ours), leases.launching_nothing(ours):
            assert [holder.exclusive for holder in holders(GPU)] == [True]
        async with leases.timing(ours):
            leases.release_after(ours, end())
        await leases.close()
        assert holders(GPU) == ()
    assert leases.timings == 1


async def test_one_alone_waits_for_the_others_and_keeps_later_ones_out() -> None:
    room = Neighbours()
    order: list[str] = []
    leave = asyncio.Event()

    async def beside(name: str) -> None:
        async with room.beside():
            order.append(name)
            await leave.wait()

    async def alone() -> None:
        async with room.alone():
            order.append(f"alone of {room.count}")
            await asyncio.sleep(0)

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for name in ("first", "second"):
            group.create_task(beside(name))
        await until(lambda: room.count == 2)
        group.create_task(alone())
        await asyncio.sleep(0)
        group.create_task(beside("later"))
        await asyncio.sleep(0.05)
        assert order == ["first", "second"]
        leave.set()
    assert order == ["first", "second", "alone of 1", "later"]


async def test_cancelled_wait_to_be_alone_lets_others_in() -> None:
    room = Neighbours()
    async with asyncio.timeout(30), room.beside():
        waiting = asyncio.create_task(room.alone().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        async with room.beside():
            assert room.count == 2
