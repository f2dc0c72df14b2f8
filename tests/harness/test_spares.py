"""Guests and timers that wait for their work, without a GPU: they find none, which is told with their first request."""

from __future__ import annotations

import select
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from harness.linux import syscalls
from harness.processes.servers import ForkServer
from harness.processes.spares import COUNTS, GUEST, TIMER, Spares, Worker
from harness.wire.device import Device

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="module")]
GPU = Device(name="0", kind="cuda", target="sm_90", visibility="CUDA_VISIBLE_DEVICES=0")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[ForkServer]:
    async with ForkServer(interpret=False) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def spares(server: ForkServer) -> AsyncIterator[Spares]:
    made = Spares(server)
    yield made
    made.drop()


async def let_go(*workers: Worker) -> None:
    for worker in workers:
        worker.end.close()
        worker.child.end()
        await worker.child.wait(30)


def has_spoken(worker: Worker) -> bool:
    return bool(select.select([worker.end], [], [], 0)[0])


async def test_who_waits_is_ready_and_is_handed_out_once(spares: Spares) -> None:
    await spares.fill(GPU)
    taken = [await spares.take(TIMER, GPU) for _ in range(COUNTS[TIMER])]
    assert all(has_spoken(worker) for worker in taken)
    assert len({worker.pid for worker in taken}) == COUNTS[TIMER]
    one_more = await spares.take(TIMER, GPU)
    assert one_more.pid not in {worker.pid for worker in taken}
    await let_go(*taken, one_more)


async def test_what_was_taken_is_started_again_and_no_more(spares: Spares) -> None:
    await spares.fill(GPU)
    first = await spares.take(GUEST, GPU)
    await spares.fill(GPU)
    others = [await spares.take(GUEST, GPU) for _ in range(COUNTS[GUEST])]
    assert all(has_spoken(worker) for worker in others)
    assert first.pid not in {worker.pid for worker in others}
    await let_go(first, *others)


async def test_one_that_ended_while_it_waited_is_not_handed_out(spares: Spares) -> None:
    await spares.fill(GPU)
    dead = await spares.take(GUEST, GPU)
    spares._waiting[GUEST, GPU.name].insert(0, dead)
    dead.child.end()
    await dead.child.wait(30)
    taken = await spares.take(GUEST, GPU)
    assert taken.pid != dead.pid
    await let_go(taken)


async def test_dropping_ends_them(spares: Spares) -> None:
    await spares.fill(GPU)
    waiting = [worker for workers in spares._waiting.values() for worker in workers]
    spares.drop(GPU)
    for worker in waiting:
        await worker.child.wait(30)
    assert not any(syscalls.cpu_seconds(worker.pid) for worker in waiting)
