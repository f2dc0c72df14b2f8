"""The engine's side of the nursery: the process that imports torch once and forks the fork servers."""

from __future__ import annotations

import asyncio
import os
import socket
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple

from harness.linux.process_environment import PROJECT_ROOT
from harness.linux.worker_start import command
from harness.wire import limits
from harness.wire.channels.async_channel import Tail
from harness.wire.channels.channel import ENCODER
from harness.wire.errors import WorkerDied
from harness.wire.messages.server import Bear, End

from .judge_python import OUR_PYTHON, JudgePython


class Born(NamedTuple):
    """A server that is starting."""

    number: int
    control: socket.socket
    """Our end; closing it ends the server."""
    printed: Tail


class Nursery:
    """One process, started when it is first needed and again if it is lost. Its servers end with it."""

    def __init__(self, python: JudgePython = OUR_PYTHON) -> None:
        self.python = python
        self._process: Process | None = None
        self._control: socket.socket | None = None
        self._printed = Tail(limits.PRINTED_BYTES)
        self._numbers = 0
        self._starting = asyncio.Lock()

    @property
    def printed(self) -> str:
        """The nursery's own standard error."""
        return self._printed.text()

    async def __aenter__(self) -> Nursery:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Start the process before a server is needed: its imports take seconds."""
        async with self._starting:
            if self._control is None:
                await self._launch()

    async def bear(self, *, interpret: bool, forks: bool) -> Born:
        """Start a server, which reports when it is ready. Raises `WorkerDied` if no process can be started."""
        self._numbers += 1
        request = Bear(number=self._numbers, interpret=interpret, forks=forks)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        printed_from, printed_to = os.pipe()
        tail = Tail(limits.PRINTED_BYTES)
        tail.follow(printed_from)
        try:
            async with self._starting:
                if not self._ask(request, theirs.fileno(), printed_to):
                    await self._launch()
                    if not self._ask(request, theirs.fileno(), printed_to):
                        raise WorkerDied(
                            f"no server can be started: {self.printed.strip() or 'it printed nothing'}"
                        )
        except BaseException:
            tail.finish()
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(printed_to)
        return Born(request.number, ours, tail)

    def kill(self, number: int) -> None:
        """Kill a server; does nothing if it is gone."""
        self._ask(End(number=number))

    async def close(self) -> None:
        """Wait until the nursery and its servers are gone. Their owners must have closed them before."""
        control, self._control = self._control, None
        process, self._process = self._process, None
        if control is not None:
            control.close()
        if process is not None and not self._numbers:
            with suppress(ProcessLookupError):
                process.kill()  # it has no servers, and may be busy with its imports
        if process is not None:
            try:
                async with asyncio.timeout(limits.END_S * 3):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        self._printed.finish()

    def _ask(self, request: Bear | End, *descriptors: int) -> bool:
        """Send the request; False if there is no nursery to receive it."""
        if self._control is None:
            return False
        try:
            socket.send_fds(self._control, [ENCODER.encode(request)], descriptors)
        except OSError:
            return False
        return True

    async def _launch(self) -> None:
        """Start the nursery's process with a socket for requests and a pipe for what it prints.

        An earlier process is ended first.
        """
        await self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        printed_from, printed_to = os.pipe()
        self._printed = Tail(limits.PRINTED_BYTES)
        self._printed.follow(printed_from)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command("harness.worker.server.nursery", str(theirs.fileno()), python=self.python.path),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=printed_to,
                env=self.python.environment,
                cwd=PROJECT_ROOT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(printed_to)
        ours.setblocking(False)
        self._control = ours
