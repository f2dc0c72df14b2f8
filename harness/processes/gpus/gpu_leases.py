"""When the slots of a pool hold the lease of their GPU: shared while something of theirs launches, exclusive while they time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from harness.node.leases import Holder, is_awaited_alone, take
from harness.processes.slot import Slot
from harness.wire.device import Device
from harness.wire.limits import TIMING_WAITS_S

OnLeaseWait = Callable[[Device, tuple[Holder, ...]], None]


class GpuLeases:
    """The leases of one pool. A slot on `cpu` needs none, and every method does nothing for it.

    What counts as a launch: calls of a candidate, the judge's work on the device, and the start of a GPU context, because it
    delays the driver calls of a timed process. What does not: static checks, the interpreter, compiling.
    """

    def __init__(self, session: str, on_wait: OnLeaseWait) -> None:
        """`on_wait` gets the holders of other sessions when a slot waits for them."""
        self._session = session
        self._on_wait = on_wait
        self._releasing: set[asyncio.Task[None]] = set()
        """Tasks that give a lease back once its timers ended."""
        self.timings = 0
        """Timings that ended."""
        self.exclusive_s = 0.0
        """Seconds in which these timings kept others from timing, until their last timer was gone."""

    @asynccontextmanager
    async def using(self, slot: Slot) -> AsyncIterator[None]:
        """Hold the shared lease of the slot's GPU, unless the slot already has a lease."""
        if slot.lease is not None:
            yield
            return
        await self._take(slot, exclusive=False)
        try:
            yield
        finally:
            self._release(slot)

    @asynccontextmanager
    async def launching_nothing(self, slot: Slot) -> AsyncIterator[None]:
        """Give the slot's shared lease back while the block runs; a timing goes first if one waits at its end.

        Not worth it for a fraction of a second: a slot that gives its lease back misses the timings that run now.
        """
        if slot.lease is None or slot.lease.exclusive:
            yield
            return
        self._release(slot)
        yield
        await self._take(slot, exclusive=False)

    async def let_timing_pass(self, slot: Slot) -> None:
        """Between two calls of a candidate: let a timing go first that was seen to wait for `TIMING_WAITS_S`.

        Not at once: candidates that are nearly judged join the same batch of timings.
        """
        if slot.lease is None or slot.lease.exclusive or not is_awaited_alone(slot.device):
            slot.saw_timing_wait_s = None
            return
        now = time.monotonic()
        slot.saw_timing_wait_s = slot.saw_timing_wait_s or now
        if now - slot.saw_timing_wait_s >= TIMING_WAITS_S:
            slot.saw_timing_wait_s = None
            async with self.launching_nothing(slot):
                pass

    @asynccontextmanager
    async def timing(self, slot: Slot) -> AsyncIterator[None]:
        """Hold the exclusive lease of the slot's GPU, among all engines of the node.

        A shared lease is given back first, so that two slots of one GPU never wait for each other. It is not taken again;
        later work on the GPU uses `using`.
        """
        if slot.lease is None or not slot.lease.exclusive:
            self._release(slot)
            await self._take(slot, exclusive=True)
        slot.timers_ahead, slot.timing_since_s = 0, time.monotonic()
        try:
            yield
        finally:
            self._release(slot)

    def release_after(self, slot: Slot, ending: Coroutine[None, None, None]) -> None:
        """End the slot's timing: give its lease back once `ending` is done, without waiting for it.

        Until then the lease is shared. Timers that end delay the driver calls of others, so the next timing waits for them;
        the next calls do not.
        """
        lease, slot.lease = slot.lease, None
        began_s = slot.timing_since_s or time.monotonic()
        if lease is not None:
            lease.share()

        async def release() -> None:
            try:
                await ending
            finally:
                self.timings += 1
                self.exclusive_s += time.monotonic() - began_s
                if lease is not None:
                    lease.release()

        task = asyncio.create_task(release(), name=f"release/{slot.device.name}")
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    @asynccontextmanager
    async def alone(self, slot: Slot) -> AsyncIterator[None]:
        """Hold the exclusive lease for everything that the slot does in the block, until it has timed."""
        await self._take(slot, exclusive=True)
        try:
            yield
        finally:
            self._release(slot)

    async def close(self) -> None:
        """Wait until every lease is given back."""
        if self._releasing:
            await asyncio.wait(self._releasing)

    async def _take(self, slot: Slot, *, exclusive: bool) -> None:
        slot.lease = await take(
            slot.device,
            exclusive=exclusive,
            session=self._session,
            on_wait=lambda holders: self._report_wait(slot.device, holders),
        )

    def _report_wait(self, device: Device, holders: tuple[Holder, ...]) -> None:
        """Report a wait for other sessions; waiting for one of our own slots is no news."""
        other_sessions = tuple(
            holder for holder in holders if (holder.pid, holder.session) != (os.getpid(), self._session)
        )
        if other_sessions:
            self._on_wait(device, other_sessions)

    def _release(self, slot: Slot) -> None:
        lease, slot.lease = slot.lease, None
        if lease is not None:
            lease.release()
