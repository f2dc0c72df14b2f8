"""Everything that `Performance` talks to, for tests without a GPU.

A test scripts the clock; the pool's one GPU is fake; timers are real processes that do nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from harness.hardware.targets import target
from harness.node.telemetry.samples import Watched
from harness.processes.kernel_cache import KernelCache
from harness.processes.starting.players import BaselineCalls, Players
from harness.processes.starting.servers import Child, ForkServer
from harness.processes.starting.spares import Spares
from harness.stages.timing.baselines import Against, Baseline
from harness.stages.timing.conclusions import Timing
from harness.stages.timing.performance import Performance
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.channel import ENCODER
from harness.wire.device import Device
from harness.wire.limits import TimeLimits
from harness.wire.messages.clock import JUDGE_REQUESTS, PLAYERS, SIDES, Measure, NeedTimers, Timer
from harness.wire.messages.judge import Proceed, TurnWanted
from harness.wire.messages.server import Ended
from harness.wire.results.latency import DeviceReading

from .process_times import GPU, QUIET, TASK


class Server:
    """Starts `sleep` processes as timers; they end on request, or if a test kills them."""

    def __init__(self) -> None:
        self.processes: dict[int, asyncio.subprocess.Process] = {}
        self.ended: list[int] = []
        self._waiting: set[asyncio.Task[None]] = set()

    @property
    def alive(self) -> list[int]:
        return [worker for worker, process in self.processes.items() if process.returncode is None]

    async def spawn_for_another(self, role: str, **_: Any) -> tuple[Child, int, socket.socket]:
        assert role == "timer"
        process = await asyncio.create_subprocess_exec("sleep", "600")
        worker = len(self.processes)
        self.processes[worker] = process
        child = Child(cast(ForkServer, self), worker, None)
        waiting = asyncio.create_task(self._wait(child, process))
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        ours, theirs = socket.socketpair()
        theirs.close()
        return child, process.pid, ours

    def request_end(self, worker: int) -> None:
        self.ended.append(worker)
        self.processes[worker].kill()

    async def all_ended(self) -> None:
        """Waits until no process is left."""
        if self._waiting:
            await asyncio.wait(self._waiting)

    async def _wait(self, child: Child, process: asyncio.subprocess.Process) -> None:
        """Ends the process when the test's loop cancels its tasks: a closed loop cannot receive the end of a process."""
        try:
            status = await process.wait()
        except asyncio.CancelledError:
            if process.returncode is None:
                process.kill()
                await process.wait()
            raise
        killed = child.worker in self.ended
        child.ended.set_result(Ended(worker=child.worker, status=-status, leftover=0, killed=killed))


class Watch:
    """Fake telemetry that counts its windows."""

    def __init__(self) -> None:
        self.windows = 0
        """Windows that have begun."""
        self.is_open = False
        self.watched: list[Watched] = []
        """The samples of the next windows. A window without any is quiet."""

    async def state(self, _own: object = None) -> DeviceReading:
        return DeviceReading(clock_mhz=1980)

    async def begin(self, _own: object = ()) -> None:
        self.windows += 1
        self.is_open = True

    async def end(self) -> Watched:
        self.is_open = False
        return self.watched.pop(0) if self.watched else Watched(QUIET)


class Pool:
    """A pool with one fake GPU; records what still runs when the lease ends."""

    def __init__(self) -> None:
        self.server, self.watch = Server(), Watch()
        self.spares, self.kernels = Spares(cast(ForkServer, self.server)), KernelCache()
        self.players, self.baseline_calls = Players(self.spares), BaselineCalls()
        self.leases = self
        self.at_release: list[int] | None = None
        """Timers that were alive when the lease was returned."""
        self.watching_at_release = False
        self.releasing: asyncio.Task[None] | None = None
        """Task that waits for the timers to end and then returns the lease."""
        self.is_used = False
        """The slot launches something."""

    def telemetry(self, _device: Device) -> Watch:
        return self.watch

    async def graph_nodes(self, _device: Device) -> int | None:
        return 64

    def limits(self, _device: Device) -> TimeLimits:
        return TimeLimits()

    @asynccontextmanager
    async def using(self, _slot: object) -> AsyncIterator[None]:
        self.is_used = True
        yield
        self.is_used = False

    @asynccontextmanager
    async def timing(self, _slot: object) -> AsyncIterator[None]:
        assert self.is_used, "between two timings, too, the slot keeps its lease"
        self.is_used = False
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
        self.watching_at_release = self.watch.is_open


class ScriptedClock:
    """The judge's end of the channel, driven by a test's script."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._channel = AsyncChannel(end)

    async def receive(self, kind: type[Any]) -> Any:
        request = JUDGE_REQUESTS.decode(await self._channel.receive())
        assert isinstance(request, kind)
        return request

    async def send(self, report: object) -> None:
        await self._channel.send(ENCODER.encode(report))

    async def reach_lease(self) -> Measure:
        """Plays the protocol until the clock has the device's lease and a timer of each side runs."""
        measure: Measure = await self.receive(Measure)
        await self.send(NeedTimers(sides=SIDES, count=1))
        timers = [await self.receive(Timer) for _ in SIDES]
        assert [timer.side for timer in timers] == list(SIDES)
        await self.send(TurnWanted(alone=True))
        await self.receive(Proceed)
        return measure

    async def take_players(self) -> list[Timer]:
        """Asks for the players of the device."""
        await self.send(NeedTimers(sides=(), count=PLAYERS))
        return [await self.receive(Timer) for _ in range(PLAYERS)]

    def close(self) -> None:
        self._channel.close()


Script = Callable[[ScriptedClock, Pool], Coroutine[Any, Any, None]]


async def measure_with(
    script: Script,
    pool: Pool,
    *,
    cancel: bool = False,
    alone: Awaitable[int] | None = None,
    exam: bool = False,
    **options: Any,
) -> Timing:
    """Returns the timing of `Performance.measure` when the clock follows `script`.

    With `cancel`, the measurement is cancelled when the script ends.
    """
    pool.is_used = True
    slot = SimpleNamespace(device=GPU, server=pool.server)
    performance = Performance(
        cast(Any, pool), cast(Any, slot), TASK, target("sm_90"), seed=7, alone=alone, exam=exam
    )
    ours, theirs = socket.socketpair()
    channel, clock = AsyncChannel(ours), ScriptedClock(theirs)
    usual: dict[str, Any] = {"against": Against(Baseline("other.py", "x = 1"))} | options
    measuring = asyncio.create_task(performance.measure(channel, "x = 2", **usual))
    scripted = asyncio.create_task(script(clock, pool))
    try:
        if cancel:
            async with asyncio.timeout(60):
                await scripted
            measuring.cancel()
        await asyncio.wait([measuring], timeout=60)
        assert measuring.done(), "the measurement does not end"
        if pool.releasing is not None:
            await pool.releasing
        return await measuring
    finally:
        measuring.cancel()
        scripted.cancel()
        with contextlib.suppress(asyncio.CancelledError, EOFError):
            await scripted
        channel.close()
        clock.close()
