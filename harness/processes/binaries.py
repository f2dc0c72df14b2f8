"""Binaries of a session by the Triton IR that they are compiled from, made by processes in which no foreign code runs.

A binary is a function of its key: Triton IR, options, target and version of Triton. So any candidate, attempt or exam may use it,
and no candidate can put anything else in its place.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import itertools
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.processes.starting.servers import Child, ForkServer
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.channel import ENCODER, BadFrame, decode_message
from harness.wire.errors import WorkerDied
from harness.wire.messages.compiler import BINARIES, Binary, KernelIr

KERNEL_S = 60
"""Wall time and CPU time of one kernel. Later the candidate's own process compiles it, within the limits of the compile stage."""
MOST_BYTES = 256 << 20
"""The least recently used binaries are dropped beyond this."""
_MOST_FRAME_BYTES = 64 << 20
_SECONDS_A_CHARACTER = 5e-5
"""Expected compile time by the length of the Triton IR: 11,000 characters of a matrix product take half a second."""


class Binaries:
    """Compiles kernels, at most `cores` at once, the shortest first, and each only once."""

    def __init__(self, server: ForkServer, cores: int) -> None:
        self.compiled = 0
        """Kernels that were not in the cache, so far."""
        self._server = server
        self._free = cores
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        """A heap by the expected end, as if each began at its request: so a long kernel does not wait for ever."""
        self._number = itertools.count()
        self._made: OrderedDict[bytes, Binary] = OrderedDict()
        self._bytes = 0
        self._making: dict[bytes, asyncio.Task[Binary]] = {}
        self._idle: list[tuple[Child, AsyncChannel]] = []
        """Back-end processes without a kernel."""

    async def make(self, kernel: KernelIr) -> Binary:
        """Return the binary; one without files if it does not compile, or not in time."""
        version = self._server.versions.get("triton", "")
        key = hashlib.sha256(ENCODER.encode((version, kernel))).digest()
        if key in self._made:
            self._made.move_to_end(key)
            return self._made[key]
        task = self._making.get(key)
        if task is None:
            task = self._making[key] = asyncio.create_task(self._make(key, kernel), name="binary")
        return await asyncio.shield(task)

    async def close(self) -> None:
        """End what is compiled now, and the processes."""
        tasks = list(self._making.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for child, channel in self._idle:
            channel.close()
            child.end()

    async def _make(self, key: bytes, kernel: KernelIr) -> Binary:
        """Compile a kernel when its turn comes and keep the binary.

        The least recently used binaries beyond `MOST_BYTES` are dropped.
        """
        try:
            async with self._turn(len(kernel.ttir) * _SECONDS_A_CHARACTER):
                self.compiled += 1
                binary = await self._compile(kernel)
        finally:
            del self._making[key]
        if binary.files:
            self._made[key] = binary
            self._bytes += binary.size
        while self._bytes > MOST_BYTES:
            self._bytes -= self._made.popitem(last=False)[1].size
        return binary

    @asynccontextmanager
    async def _turn(self, expected_s: float) -> AsyncIterator[None]:
        """Wait until a core is free, then run the block. A free core goes to the kernel with the earliest expected end.

        A wait that is cancelled takes no core.
        """
        if self._free:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (time.monotonic() + expected_s, next(self._number), turn))
            await turn
        try:
            yield
        finally:
            self._free += 1
            while self._waiting and self._free:
                turn = heapq.heappop(self._waiting)[2]
                if not turn.done():  # not cancelled
                    turn.set_result(None)
                    self._free -= 1

    async def _compile(self, kernel: KernelIr) -> Binary:
        """Compile a kernel in a back-end process, an idle one or a new one.

        Returns a binary without files if no process starts, or if the process ends, lies or takes longer than `KERNEL_S`. After
        such a failure, and after a cancel, the process is ended.
        """
        if not self._server.forks:  # a fresh interpreter takes longer than most kernels
            return Binary()
        self._idle = [backend for backend in self._idle if not backend[0].ended.done()]
        try:
            child, channel = (
                self._idle.pop()
                if self._idle
                else await self._server.spawn("backend", cpu_limit_s=KERNEL_S, sandboxed=True)
            )
        except (WorkerDied, OSError):  # too few files or processes; the candidate's own process compiles then
            return Binary()
        try:
            async with asyncio.timeout(KERNEL_S):
                await channel.send(ENCODER.encode(kernel))
                binary = decode_message(BINARIES, await channel.receive(_MOST_FRAME_BYTES))
        except BaseException as error:
            channel.close()
            child.end()
            if isinstance(error, TimeoutError | EOFError | BadFrame):
                return Binary()
            raise
        self._idle.append((child, channel))
        return binary
