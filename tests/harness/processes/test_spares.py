"""Protects spare guests and timers, which start ahead and wait for work. Without a GPU, only their first request fails."""

from __future__ import annotations

import select
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from harness.processes.starting.servers import ForkServer
from harness.processes.starting.spares import GUEST, TIMER, Spares, Worker
from harness.wire.device import Device
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
