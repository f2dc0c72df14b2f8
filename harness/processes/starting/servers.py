"""The engine's side of a fork server: starts workers, notes how they end, replaces a server that died."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypedDict, Unpack

import msgspec

from harness.linux.foreign_files import remove
from harness.wire import limits
from harness.wire.channels.async_channel import AsyncChannel, Tail
from harness.wire.channels.channel import ENCODER
from harness.wire.device import Device
from harness.wire.errors import WorkerDied
from harness.wire.messages.server import SERVER_REPORTS, End, Ended, Language, Ready, Spawn, Started
from suites.source.package import PackageView

from .nursery import Born, Nursery


class Child:
    """One worker process. Its whole process tree is gone when `ended` is done."""

    def __init__(self, server: ForkServer, worker: int, scratch: Path | None) -> None:
        loop = asyncio.get_running_loop()
        self.worker = worker
        self.scratch = scratch
        self.started: asyncio.Future[int] = loop.create_future()
        self.ended: asyncio.Future[Ended] = loop.create_future()
        self.printed = Tail(limits.PRINTED_BYTES)
        self._server = server

    def end(self) -> None:
        """Request the end of the whole tree; returns at once, may be called at any time."""
        if not self.ended.done():
            self._server.request_end(self.worker)

    async def wait(self, seconds: float) -> Ended:
        """Wait until it ended; kill it after `seconds`. Raises `WorkerDied` if it survives even that."""
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self.ended)
        except TimeoutError:
            self.end()
        try:
            async with asyncio.timeout(limits.END_S * 2):
                return await asyncio.shield(self.ended)
        except TimeoutError:
            raise WorkerDied("a worker and its processes could not be ended") from None


class SpawnOptions(TypedDict, total=False):
    """How a worker is started."""

    cpu_limit_s: int
    sandboxed: bool
    device: Device | None
    """Matters only if it is a GPU, as `sharers` does."""
    sharers: int
    """Judges that share the GPU's memory."""
    package: PackageView | None
    """What the worker may import and read besides installed packages."""


class ForkServer:
    """One server process, `interpreting` or `compiling`. Methods raise `WorkerDied` if it does not answer."""

    def __init__(
        self,
        *,
        interpret: bool,
        furnish: Callable[[Path, Device], None] | None = None,
        nursery: Nursery | None = None,
    ) -> None:
        """`furnish` fills the scratch folder of a GPU worker before it starts. `nursery` may be shared by several servers."""
        self.name = "interpreting" if interpret else "compiling"
        self.forks = True
        """True if workers are forked; otherwise they are fresh interpreters."""
        self.why_not = ""
        """Why forking is not used; empty if it is."""
        self.versions: dict[str, str] = {}
        self.language: Language | None = None
        self.processes = self.contexts = 0
        """Processes started so far, with their wardens; and those of them that have a context on a GPU."""
        self._interpret = interpret
        self._furnish = furnish
        self._nursery, self._alone = nursery or Nursery(), nursery is None
        self._born: Born | None = None
        self._pid: int | None = None
        self._reader: asyncio.Task[None] | None = None
        self._children: dict[int, Child] = {}
        self._removals: set[asyncio.Future[None]] = set()
        self._next_worker = 0
        self._starting = asyncio.Lock()

    @property
    def alive(self) -> bool:
        """True while the server answers."""
        return self._reader is not None and not self._reader.done()

    @property
    def pid(self) -> int | None:
        """Process id of the server."""
        return self._pid

    async def start(self) -> None:
        """Start the server unless it runs. A self-test decides whether it forks."""
        async with self._starting:
            if self.alive:
                return
            await self._leave()
            if self.forks:
                ready = await self._launch()
                self.why_not = ready.problem or await self._self_test()
                self.versions, self.language = ready.versions, ready.language
                if not self.why_not:
                    return
                self.forks = False
                await self._leave()
            await self._launch()

    async def __aenter__(self) -> ForkServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()
        if self._alone:
            await self._nursery.close()

    async def spawn(self, role: str, **options: Unpack[SpawnOptions]) -> tuple[Child, AsyncChannel]:
        """Start a worker; return it with our end of its channel."""
        child, _, ours = await self.spawn_for_another(role, **options)
        return child, AsyncChannel(ours)

    async def spawn_for_another(
        self,
        role: str,
        *,
        cpu_limit_s: int = 0,
        sandboxed: bool = False,
        device: Device | None = None,
        sharers: int = 1,
        package: PackageView | None = None,
    ) -> tuple[Child, int, socket.socket]:
        """Start a worker; return it with its pid and the socket for the process that will talk to it. See `SpawnOptions`."""
        scratch = Path(tempfile.mkdtemp(prefix="wavedeck-guest-")) if sandboxed else None
        if scratch is not None and device is not None and device.kind != "cpu" and self._furnish is not None:
            try:
                await asyncio.to_thread(self._furnish, scratch, device)
            except BaseException as error:
                self._remove(scratch)
                if isinstance(error, OSError):
                    raise WorkerDied(f"a worker's folder cannot be written to: {error}") from error
                raise
        if not self.alive or self._born is None:
            self._remove(scratch)
            raise WorkerDied(f"the {self.name} server is gone; it is started again with the next evaluation")
        self._next_worker += 1
        self.processes += 2 if sandboxed else 1
        self.contexts += device is not None and device.kind != "cpu"
        child = Child(self, self._next_worker, scratch)
        ours, theirs = socket.socketpair()
        printed_from, printed_to = os.pipe()
        child.printed.follow(printed_from)
        self._children[child.worker] = child
        spawn = Spawn(
            worker=child.worker,
            role=role,
            scratch=str(scratch or ""),
            cpu_limit_s=cpu_limit_s,
            device=device if device is not None and device.kind != "cpu" else None,
            sharers=sharers,
            package=package,
        )
        try:
            socket.send_fds(self._born.control, [ENCODER.encode(spawn)], [theirs.fileno(), printed_to])
            async with asyncio.timeout(limits.GUEST_START_S):
                pid = await asyncio.shield(child.started)
        except (OSError, TimeoutError) as error:
            ours.close()
            child.end()
            raise WorkerDied(f"the {self.name} server does not start workers: {error}") from error
        except BaseException:
            ours.close()
            child.end()
            raise
        finally:
            theirs.close()
            os.close(printed_to)
        return child, pid, ours

    def request_end(self, worker: int) -> None:
        """Request the end of a worker, without waiting."""
        if self._born is not None:
            try:
                self._born.control.send(ENCODER.encode(End(number=worker)))
            except OSError:
                self._bury("its socket is closed")

    async def _launch(self) -> Ready:
        """Start the server, wait until it is ready, and begin to read its reports. Returns its first report.

        Raises `WorkerDied` if it ends or does not get ready in time; it is ended then.
        """
        self._born = born = await self._nursery.bear(interpret=self._interpret, forks=self.forks)
        try:
            async with asyncio.timeout(limits.SERVER_START_S):
                data = await asyncio.get_running_loop().sock_recv(born.control, 1 << 16)
        except TimeoutError:
            self._nursery.kill(born.number)
            await self._leave()
            raise WorkerDied(
                f"the {self.name} server did not start within {limits.SERVER_START_S:g} s"
            ) from None
        if not data:
            await self._leave()
            printed = (born.printed.text().strip() or self._nursery.printed.strip()).rpartition("\n")[2]
            raise WorkerDied(f"the {self.name} server ended at its start: {printed or 'it printed nothing'}")
        ready = SERVER_REPORTS.decode(data)
        assert isinstance(ready, Ready)
        self._pid = ready.pid
        self._reader = asyncio.create_task(self._read(born.control), name=f"{self.name}/reports")
        return ready

    async def _self_test(self) -> str:
        """Fork a worker that computes with tensors; return what is wrong with it, or nothing."""
        try:
            child, channel = await self.spawn("self-test")
            try:
                async with asyncio.timeout(limits.SELF_TEST_S):
                    reply = bytes(await channel.receive())
            finally:
                channel.close()
                child.end()
        except TimeoutError:
            return "a forked child hangs in its first tensor operation"
        except (WorkerDied, EOFError) as error:
            return f"a forked child ends at once: {error}"
        return "" if reply == b"ok" else reply.decode(errors="replace")

    async def _read(self, control: socket.socket) -> None:
        """Read the server's reports on its workers until the server ends. Then all workers that are left count as lost."""
        loop = asyncio.get_running_loop()
        why = "it ended"
        try:
            while data := await loop.sock_recv(control, 1 << 16):
                report = SERVER_REPORTS.decode(data)
                if isinstance(report, Started):
                    child = self._children.get(report.worker)
                    if child is not None and not child.started.done():
                        child.started.set_result(report.pid)
                elif isinstance(report, Ended):
                    self._forget(report)
        except (OSError, msgspec.DecodeError) as error:
            why = str(error)
        self._bury(why)

    def _forget(self, report: Ended) -> None:
        """Note the end of a worker: wake all that wait for its start or its end, and delete its scratch folder.

        Unknown workers are ignored.
        """
        child = self._children.pop(report.worker, None)
        if child is None:
            return
        child.printed.finish()
        if not child.started.done():
            why = f": {report.lost}" if report.lost else ""
            child.started.set_exception(WorkerDied(f"a worker ended before it ran{why}"))
            child.started.exception()
        if not child.ended.done():
            child.ended.set_result(report)
        self._remove(child.scratch)

    def _bury(self, why: str) -> None:
        """Mark all workers as ended, because the server is gone: waits for their start raise `WorkerDied`."""
        for child in list(self._children.values()):
            if not child.started.done():
                child.started.set_exception(WorkerDied(f"the {self.name} server is gone: {why}"))
                child.started.exception()
            lost = f"the {self.name} server died"
            self._forget(Ended(worker=child.worker, status=9, leftover=0, killed=False, lost=lost))

    def _remove(self, scratch: Path | None) -> None:
        """Delete a worker's folder in a thread; `_leave` waits for it."""
        if scratch is not None:
            loop = asyncio.get_running_loop()
            removal = loop.run_in_executor(None, remove, scratch)
            self._removals.add(removal)
            removal.add_done_callback(self._removals.discard)

    async def _leave(self) -> None:
        """End the server and all its workers, by force if it does not end in time, and wait until their folders are deleted.

        Nothing happens for a server that does not run.
        """
        born, self._born = self._born, None
        if born is not None:
            born.control.shutdown(socket.SHUT_WR)  # the server sees the end and ends its workers
            gone = self._reader or asyncio.create_task(_until_closed(born.control), name=f"{self.name}/end")
            if not (await asyncio.wait((gone,), timeout=limits.END_S * 2))[0]:
                self._nursery.kill(born.number)
            await gone
            born.control.close()
            born.printed.finish()
        self._bury("it was stopped")
        self._pid = self._reader = None
        for removal in list(self._removals):
            await removal


async def _until_closed(control: socket.socket) -> None:
    """Wait until the other end is closed; ignore what it still sends."""
    with suppress(ConnectionError):
        while await asyncio.get_running_loop().sock_recv(control, 1 << 16):
            continue
