"""Guests and timers that wait for their work, without a GPU: they find none, which is told with their first request."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytest_asyncio

from harness.device import Device
from harness.evaluating import Evaluating
from harness.servers import ForkServer
from harness.spares import COUNTS, GUEST, TIMER, Spares, Worker
from harness.worker.serving import linux

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


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 -- nobody tells what stands in the lists
            await asyncio.sleep(0)


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


async def test_one_that_is_still_starting_is_handed_out_before_another_is_started(spares: Spares) -> None:
    filling = asyncio.create_task(spares.fill(GPU), name="filling")
    await until(lambda: len(spares._waiting.get((TIMER, GPU.name), ())) == COUNTS[TIMER])
    started = {worker.pid for worker in spares._waiting[TIMER, GPU.name]}
    taken = [await spares.take(TIMER, GPU) for _ in range(COUNTS[TIMER])]
    assert {worker.pid for worker in taken} == started
    await filling
    assert spares._waiting[TIMER, GPU.name] == []
    await let_go(*taken)


async def test_one_that_is_ready_goes_before_one_that_is_starting(spares: Spares) -> None:
    await spares.fill(GPU)
    first, *_ = ready = tuple(spares._waiting[TIMER, GPU.name])
    assert await spares.take(TIMER, GPU) is first
    filling = asyncio.create_task(spares.fill(GPU), name="filling")
    await until(lambda: len(spares._waiting[TIMER, GPU.name]) == COUNTS[TIMER])
    taken = [await spares.take(TIMER, GPU) for _ in range(COUNTS[TIMER] - 1)]
    assert set(taken) == {*ready} - {first}
    await filling
    await let_go(first, *taken)


async def test_filling_that_is_called_off_leaves_none_that_is_not_ready(spares: Spares) -> None:
    filling = asyncio.create_task(spares.fill(GPU), name="filling")
    await until(lambda: bool(spares._waiting.get((GUEST, GPU.name))))
    begun = [worker for workers in spares._waiting.values() for worker in workers]
    filling.cancel()
    await asyncio.wait([filling])
    assert all(
        worker.pid not in spares._starting for workers in spares._waiting.values() for worker in workers
    )
    for worker in begun:
        if worker.end.fileno() == -1:
            await worker.child.wait(30)


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
    assert not any(linux.cpu_seconds(worker.pid) for worker in waiting)


async def test_another_gpus_are_left_alone(spares: Spares) -> None:
    await spares.fill(GPU)
    spares.drop(Device(name="1", kind="cuda"))
    taken = await spares.take(GUEST, GPU)
    assert not taken.child.ended.done()
    assert has_spoken(taken)
    await let_go(taken)


async def test_a_guest_that_cannot_be_laid_out_is_ended(tmp_path: Path) -> None:
    """Whoever takes one from the spares answers for it from then on."""
    ended: list[bool] = []
    ours, theirs = socket.socketpair()
    child = SimpleNamespace(scratch=tmp_path, end=lambda: ended.append(True))

    class OneSpare:
        async def take(self, *_: object) -> Worker:
            return Worker(cast(Any, child), 1, ours)

    class Full:
        def lay(self, *_: object) -> None:
            raise OSError(28, "No space left on device")

    one = cast(Any, Evaluating.__new__(Evaluating))
    one._slot, one._source = SimpleNamespace(device=GPU), "import triton"
    one._pool = SimpleNamespace(spares=OneSpare(), kernels=Full())
    with pytest.raises(OSError, match="No space"):
        await one._guest(1)
    assert ended == [True]
    assert ours.fileno() == -1
    theirs.close()
