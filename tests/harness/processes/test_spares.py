"""Protects spare guests and timers, which start ahead and wait for work. Without a GPU, only their first request fails."""

from __future__ import annotations

import select
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from harness import DevicePool
from harness.linux import syscalls
from harness.node.leases import lease
from harness.processes.gpus.capacity import TIMERS_A_CANDIDATE
from harness.processes.starting.servers import ForkServer
from harness.processes.starting.spares import GUEST, TIMER, Spares, Worker
from harness.wire.device import Device
from harness.wire.messages.clock import PLAYERS
from tests.support.engine.engines import until
from tests.support.judge.fake_nodes import own_leases
from tests.support.judge.nurseries import one_nursery

__all__ = ["own_leases"]
pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="module")]
GPU = Device(name="0", kind="cuda", target="sm_90", visibility="CUDA_VISIBLE_DEVICES=0")
COUNTS = {GUEST: 2, TIMER: 3}


async def fill(spares: Spares) -> None:
    await spares.fill(GPU, spares.missing(GPU, COUNTS))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[ForkServer]:
    with one_nursery():
        async with ForkServer(interpret=False) as started:
            yield started


@pytest_asyncio.fixture(loop_scope="module")
async def spares(server: ForkServer) -> AsyncIterator[Spares]:
    started = Spares(server)
    yield started
    started.drop()


async def end(*workers: Worker) -> None:
    for worker in workers:
        worker.end.close()
        worker.child.end()
        await worker.child.wait(30)


def has_spoken(worker: Worker) -> bool:
    return bool(select.select([worker.end], [], [], 0)[0])


async def test_spare_is_ready_and_is_taken_once(spares: Spares) -> None:
    await fill(spares)
    taken = [await spares.take(TIMER, GPU) for _ in range(COUNTS[TIMER])]
    assert all(has_spoken(worker) for worker in taken)
    assert len({worker.pid for worker in taken}) == COUNTS[TIMER]
    one_more = await spares.take(TIMER, GPU)
    assert one_more.pid not in {worker.pid for worker in taken}
    await end(*taken, one_more)


async def test_taken_spare_is_replaced(spares: Spares) -> None:
    await fill(spares)
    first = await spares.take(GUEST, GPU)
    await fill(spares)
    replacements = [await spares.take(GUEST, GPU) for _ in range(COUNTS[GUEST])]
    assert all(has_spoken(worker) for worker in replacements)
    assert first.pid not in {worker.pid for worker in replacements}
    await end(first, *replacements)


async def test_first_candidate_does_not_wait_for_guests_of_others(spares: Spares) -> None:
    assert spares.missing(GPU, {TIMER: 3, GUEST: 2}) == [TIMER, GUEST, TIMER, TIMER, GUEST]


async def test_dead_spare_is_not_taken(spares: Spares) -> None:
    await fill(spares)
    dead = await spares.take(GUEST, GPU)
    spares._waiting[GUEST, GPU.name].insert(0, dead)
    dead.child.end()
    await dead.child.wait(30)
    taken = await spares.take(GUEST, GPU)
    assert taken.pid != dead.pid
    await end(taken)


async def test_drop_ends_waiting_spares(spares: Spares) -> None:
    await fill(spares)
    waiting = [worker for workers in spares._waiting.values() for worker in workers]
    spares.drop(GPU)
    for worker in waiting:
        await worker.child.wait(30)
    assert not any(syscalls.cpu_seconds(worker.pid) for worker in waiting)


@pytest.mark.soak
async def test_pool_prepares_before_the_first_candidate_and_ahead_of_each(
    own_leases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Device(
        name="0", kind="cuda", target="sm_90", visibility="CUDA_VISIBLE_DEVICES=0", package="0000:0a:00"
    )
    monkeypatch.setattr("harness.processes.pool.choose_devices", lambda _names: (gpu,))
    waiting = TIMERS_A_CANDIDATE + PLAYERS
    async with DevicePool(("0",), slots=2) as pool:
        await until(lambda: pool._filling["0"].done())
        assert not pool.spares.missing(gpu, {GUEST: 2, TIMER: waiting})
        assert pool.spares.missing(gpu, {TIMER: waiting + 1}) == [TIMER]
        async with lease(gpu, exclusive=True), pool.slot(timers=2 * TIMERS_A_CANDIDATE):
            assert not pool._filling["0"].done(), "no context starts while a kernel is timed"
        async with pool.slot(timers=TIMERS_A_CANDIDATE) as slot:
            pool.expect_timer(slot)
            await until(lambda: not pool.spares.missing(gpu, {TIMER: waiting + 1}))
        async with pool.slot(timers=TIMERS_A_CANDIDATE), pool.slot(timers=TIMERS_A_CANDIDATE):
            await until(lambda: not pool.spares.missing(gpu, {TIMER: waiting + TIMERS_A_CANDIDATE}))
