"""A slot: the place for one candidate on one device, with the judge's process, and who is judged beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.node.leases import Lease
from harness.processes.starting.servers import Child, ForkServer
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.device import Device


class Slot:
    """A place for one candidate on one device. Its judge starts when it is first needed and is replaced when it is lost."""

    def __init__(
        self, device: Device, server: ForkServer, interpreter: Slot | None = None, *, sharers: int = 1
    ) -> None:
        """`sharers`: slots of the same GPU, whose judges share its memory."""
        self.device = device
        self.server = server
        self.interpreter = interpreter
        """For a GPU: the slot on `cpu` that judges the same candidate."""
        self.lease: Lease | None = None
        self.saw_timing_wait_s: float | None = None
        """When its candidate first saw that a timing waits, by `time.monotonic`."""
        self.timing_since_s: float | None = None
        """When its timing began; `None` if it does not time."""
        self.timers_ahead = 0
        """Timers that its candidate will need if it is timed; 0 once it has them."""
        self.script_worker: Child | None = None
        """The script worker that its judge uses; `None` if it has none."""
        self._sharers = sharers
        self._judge: Child | None = None
        self._channel: AsyncChannel | None = None
        self._starting = asyncio.Lock()

    @property
    def judge(self) -> Child | None:
        """The judge's process; `None` before it starts."""
        return self._judge

    async def channel(self) -> AsyncChannel:
        """Return the channel of a judge that is ready for a candidate."""
        async with self._starting:
            if self._judge is None or self._channel is None or self._judge.ended.done():
                self.discard()
                self._judge, self._channel = await self.server.spawn(
                    "judge", device=self.device, sharers=self._sharers
                )
            return self._channel

    def discard(self) -> None:
        """End the judge, whatever it does. The next candidate gets a new one."""
        if self._channel is not None:
            self._channel.close()
        if self._judge is not None:
            self._judge.end()
        self._judge = self._channel = self.script_worker = None


class Neighbours:
    """Lets evaluations in, side by side or alone. One that waits to be alone keeps later ones out."""

    def __init__(self) -> None:
        self.count = 0
        """Evaluations that run now."""
        self._waiting_to_be_alone = 0
        self._is_alone = False
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Wait until none is alone nor waits to be."""
        while self._is_alone or self._waiting_to_be_alone:
            await self._change()
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1
            self._changed.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until no evaluation runs, and keep others out until the block ends."""
        self._waiting_to_be_alone += 1
        try:
            while self.count:
                await self._change()
            self.count += 1
            self._is_alone = True
        finally:
            self._waiting_to_be_alone -= 1
            self._changed.set()
        try:
            yield
        finally:
            self.count -= 1
            self._is_alone = False
            self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
