"""The engine's side of a nursery: where fork servers come from, which share the import of torch."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from types import TracebackType
from typing import NamedTuple

from harness.linux.process_environment import PROJECT_ROOT, worker_environment
from harness.wire import limits
from harness.wire.async_channel import Tail
from harness.wire.encoding import ENCODER
from harness.wire.errors import WorkerDied
from harness.wire.nursery_messages import Bear, Kill


class Born(NamedTuple):
    """A server that starts."""

    number: int
    control: socket.socket
    """Ours; closed by whoever asked for the server, which ends it."""
    said: Tail


class Nursery:
    """One process, started when it is first needed and again when it is lost. Its servers end with it."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._control: socket.socket | None = None
        self._said = Tail(limits.PRINTED_BYTES)
        self._numbers = 0
        self._starting = asyncio.Lock()

    @property
    def said(self) -> str:
        """What it complained of itself."""
        return self._said.text()

    async def __aenter__(self) -> Nursery:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def bear(self, *, interpret: bool, forks: bool) -> Born:
        """A server that starts, which says when it is ready; `WorkerDied` when there is no process to be had."""
        self._numbers += 1
        asked = Bear(number=self._numbers, interpret=interpret, forks=forks)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        said, say = os.pipe()
        tail = Tail(limits.PRINTED_BYTES)
        tail.follow(said)
        try:
            async with self._starting:
                if not self._ask(asked, theirs.fileno(), say):
                    await self._launch()
                    if not self._ask(asked, theirs.fileno(), say):
                        raise WorkerDied(
                            f"no server can be started: {self.said.strip() or 'it said nothing'}"
                        )
        except BaseException:
            tail.finish()
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(say)
        return Born(asked.number, ours, tail)

    def kill(self, number: int) -> None:
        """Ends a server at once; nothing when it is gone."""
        self._ask(Kill(number=number))

    async def close(self) -> None:
        """Returns when it and its servers are gone; those had to be left by whoever asked for them."""
        control, self._control = self._control, None
        process, self._process = self._process, None
        if control is not None:
            control.close()
        if process is not None:
            try:
                async with asyncio.timeout(limits.END_S * 3):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        self._said.finish()

    def _ask(self, request: Bear | Kill, *descriptors: int) -> bool:
        """Whether there is somebody who was told."""
        if self._control is None:
            return False
        try:
            socket.send_fds(self._control, [ENCODER.encode(request)], descriptors)
        except OSError:
            return False
        return True

    async def _launch(self) -> None:
        await self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        said, say = os.pipe()
        self._said = Tail(limits.PRINTED_BYTES)
        self._said.follow(said)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "harness.worker.server.nursery", str(theirs.fileno())),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=say,
                env=worker_environment(interpret=False),
                cwd=PROJECT_ROOT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(say)
        ours.setblocking(False)
        self._control = ours
