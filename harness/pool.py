"""The devices of one engine: fork servers, and judges that candidates wait for."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import platform
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType

from .device import Device
from .devices import choose_devices
from .errors import HarnessError, JudgeExtraMissing
from .frames import AsyncChannel
from .limits import TimeLimits
from .servers import Child, ForkServer


class Slot:
    """One judge's place on one device. The judge is started when it is first needed and replaced when it is lost."""

    def __init__(self, device: Device, server: ForkServer) -> None:
        self.device = device
        self._server = server
        self._judge: Child | None = None
        self._channel: AsyncChannel | None = None

    @property
    def judge(self) -> Child | None:
        """The judge's process, when there is one."""
        return self._judge

    async def channel(self) -> AsyncChannel:
        """The way to a judge that is ready for a candidate."""
        if self._judge is None or self._channel is None or self._judge.ended.done():
            self.discard()
            self._judge, self._channel = await self._server.spawn("judge")
        return self._channel

    def discard(self) -> None:
        """Ends the judge: it is in the middle of something that nobody waits for. The next one starts fresh."""
        if self._channel is not None:
            self._channel.close()
        if self._judge is not None:
            self._judge.end()
        self._judge = self._channel = None


class DevicePool:
    """Where candidates are judged. Use it as `async with DevicePool() as pool`.

    `devices` are names as `cpu`; `slots` is how many candidates are judged at once (on `cpu`: one a core). An unknown
    device is `UnknownDevice`, a missing torch or triton `JudgeExtraMissing`, a server that does not start `WorkerDied`.
    """

    def __init__(
        self, devices: Sequence[str] = ("cpu",), slots: int | None = None, limits: TimeLimits | None = None
    ) -> None:
        self.devices: tuple[Device, ...] = choose_devices(devices)
        if slots is not None and slots < 1:
            raise ValueError("slots must be at least 1")
        self.slots = slots or len(os.sched_getaffinity(0))
        self.limits = limits or TimeLimits()
        self.interpreting = ForkServer(interpret=True)
        self.compiling = ForkServer(interpret=False)
        self._free: asyncio.LifoQueue[Slot] = asyncio.LifoQueue()
        self._all: list[Slot] = []
        self.compiles = asyncio.Semaphore(self.slots)
        """Held by each compiling process."""

    async def __aenter__(self) -> DevicePool:
        for package in ("torch", "triton"):
            if importlib.util.find_spec(package) is None:
                raise JudgeExtraMissing(
                    f"{package} is not installed, so nothing can be judged; pip install 'wavedeck[judge]'"
                )
        try:
            await self._start_servers()
        except BaseException:
            await self._close()
            raise
        self._all = [Slot(self.devices[n % len(self.devices)], self.interpreting) for n in range(self.slots)]
        for slot in self._all:
            self._free.put_nowait(slot)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def versions(self) -> dict[str, str]:
        """What judges: versions of Python, torch, triton, numpy and the kernel of this machine."""
        return {**self.interpreting.versions, "linux": platform.release()}

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """A free slot, waited for; servers that died are started again first."""
        if not self._all:
            raise HarnessError("the pool is not open; use it as `async with DevicePool() as pool`")
        slot = await self._free.get()
        try:
            await self._start_servers()
            yield slot
        finally:
            self._free.put_nowait(slot)

    async def _start_servers(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for server in (self.interpreting, self.compiling):
                    if not server.alive:
                        group.create_task(server.start(), name=f"start/{server.name}")
        except ExceptionGroup as group_error:
            raise group_error.exceptions[0] from None

    async def _close(self) -> None:
        slots, self._all = self._all, []
        for slot in slots:
            slot.discard()
        async with asyncio.TaskGroup() as group:
            for server in (self.interpreting, self.compiling):
                group.create_task(server.__aexit__(None, None, None), name=f"stop/{server.name}")
