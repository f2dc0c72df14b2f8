"""The other ends of `Performance`: a clock that a test scripts, a pool without a GPU, and real processes in the place of timers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from harness.hardware.targets import target
from harness.node.telemetry import Watched
from harness.processes.kernel_cache import KernelCache
from harness.processes.servers import Child, ForkServer
from harness.processes.spares import Spares
from harness.stages.timing.baselines import Against, Baseline
from harness.stages.timing.conclusions import Timing
from harness.stages.timing.performance import Performance
from harness.wire.async_channel import AsyncChannel
from harness.wire.clock_messages import (
    BASELINE,
    CANDIDATE,
    JUDGE_REQUESTS,
    Leased,
    LeaseWanted,
    Measure,
    NeedTimers,
    Timer,
)
from harness.wire.device import Device
from harness.wire.encoding import ENCODER
from harness.wire.latency import DeviceState
from harness.wire.limits import TimeLimits
from harness.wire.server_messages import Ended

from .timings import GPU, QUIET, TASK


class Server:
    """Starts real processes that end only when they are told to, in the place of timers."""

    def __init__(self) -> None:
        self.processes: dict[int, asyncio.subprocess.Process] = {}
        self.ended: list[int] = []
        self._waiting: set[asyncio.Task[None]] = set()

    @property
    def alive(self) -> list[int]:
        return [worker for worker, one in self.processes.items() if one.returncode is None]

    async def spawn_for_another(self, role: str, **_: Any) -> tuple[Child, int, socket.socket]:
        assert role == "timer"
        started = await asyncio.create_subprocess_exec("sleep", "600")
        worker = len(self.processes)
        self.processes[worker] = started
        child = Child(cast(ForkServer, self), worker, None)
        waiting = asyncio.create_task(self._wait(child, started))
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        ours, theirs = socket.socketpair()
        theirs.close()
        return child, started.pid, ours

    def request_end(self, worker: int) -> None:
        self.ended.append(worker)
        self.processes[worker].kill()

    async def _wait(self, child: Child, started: asyncio.subprocess.Process) -> None:
        status = await started.wait()
        child.ended.set_result(Ended(worker=child.worker, status=status & 0xFF, leftover=0, killed=True))


class Watch:
    """Telemetry without a device."""

    def __init__(self) -> None:
        self.words: list[str] = []

    async def state(self, _own: object = None) -> DeviceState:
        return DeviceState(product="X")

    async def counts_energy(self) -> bool:
        return (await self.state()).energy_j is not None

    async def begin(self, _own: object = ()) -> None:
        self.words.append("begin")

    async def end(self) -> Watched:
        self.words.append("end")
        return Watched(QUIET)


class Pool:
    """A pool with one GPU that is not there."""

    def __init__(self) -> None:
        self.server, self.watch = Server(), Watch()
        self.spares, self.kernels = Spares(cast(ForkServer, self.server)), KernelCache()
        self.at_release: list[int] | None = None
        """Timers that lived when the lease was given back."""
        self.watching_at_release = False
        self.releasing: asyncio.Task[None] | None = None
        """The end of the timers, and then of the lease."""
        self.allowed = TimeLimits()

    def telemetry(self, _device: Device) -> Watch:
        return self.watch

    def limits(self, _device: Device) -> TimeLimits:
        return self.allowed

    @asynccontextmanager
    async def using(self, _slot: object) -> AsyncIterator[None]:
        self.watch.words.append("using")
        yield
        self.watch.words.append("used")

    @asynccontextmanager
    async def timing(self, _slot: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if self.releasing is None:
                self._release()

    def release_after(self, _slot: object, ending: Coroutine[None, None, None]) -> None:
        async def release() -> None:
            await ending
            self._release()

        self.releasing = asyncio.create_task(release())

    def _release(self) -> None:
        self.at_release = self.server.alive
        self.watching_at_release = self.watch.words.count("begin") != self.watch.words.count("end")


class ScriptedClock:
    """The judge's end of its channel, in a test's hands."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._channel = AsyncChannel(end)

    async def hear(self, kind: type[Any]) -> Any:
        request = JUDGE_REQUESTS.decode(await self._channel.receive())
        assert isinstance(request, kind)
        return request

    async def tell(self, report: object) -> None:
        await self._channel.send(ENCODER.encode(report))

    async def started(self) -> Measure:
        """To where the device is the clock's: six timers run."""
        measure: Measure = await self.hear(Measure)
        await self.tell(NeedTimers(sides=(BASELINE, CANDIDATE), count=3, instead=True))
        timers = [await self.hear(Timer) for _ in range(6)]
        assert [(one.side, one.pair) for one in timers] == [
            (side, pair) for pair in range(3) for side in (BASELINE, CANDIDATE)
        ]
        await self.tell(LeaseWanted())
        await self.hear(Leased)
        return measure

    def leave(self) -> None:
        self._channel.close()


Script = Callable[[ScriptedClock, Pool], Coroutine[Any, Any, None]]


async def timed(
    script: Script, pool: Pool, *, cancel: bool = False, alone: Awaitable[int] | None = None, **options: Any
) -> Timing:
    """What `measure` says to a clock of this script; cancelled when the script is over where that is asked for."""
    slot = SimpleNamespace(device=GPU, server=pool.server)
    performance = Performance(cast(Any, pool), cast(Any, slot), TASK, target("sm_90"), seed=7, alone=alone)
    ours, theirs = socket.socketpair()
    channel, clock = AsyncChannel(ours), ScriptedClock(theirs)
    usual: dict[str, Any] = {"rival": None, "against": Against(Baseline("other.py", "x = 1"))} | options
    measuring = asyncio.create_task(performance.measure(channel, "x = 2", **usual))
    scripted = asyncio.create_task(script(clock, pool))
    try:
        if cancel:
            async with asyncio.timeout(60):
                await scripted
            measuring.cancel()
        await asyncio.wait([measuring], timeout=60)
        assert measuring.done(), "it goes on without end"
        if pool.releasing is not None:
            await pool.releasing
        return await measuring
    finally:
        measuring.cancel()
        scripted.cancel()
        with contextlib.suppress(asyncio.CancelledError, EOFError):
            await scripted
        channel.close()
        clock.leave()
