"""A slot: the place for one candidate on one device, with the judge's process."""

from __future__ import annotations

import asyncio

from harness.node.leases import Lease
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.device import Device

from .starting.servers import Child, ForkServer


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
        self._judge = self._channel = None
