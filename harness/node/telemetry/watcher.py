"""Asks a sampler process about a GPU; the caller gets an answer even if that process fails."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Self

import msgspec

from harness.linux.process_environment import PROJECT_ROOT, worker_environment
from harness.wire.results.latency import DeviceReading, Window
from harness.wire.results.provenance import Provenance

from .samples import (
    REPLIES,
    AskState,
    BeginSampling,
    Begun,
    EndSampling,
    Reply,
    Request,
    StateReport,
    Watched,
)

ANSWER_S = 10.0
"""A library that takes longer hangs; the first answer includes its start."""
MOST_LOSSES = 2
MOST_REPLY_BYTES = 16 << 20
_ASK_ONCE_S = 30.0


def ask_once(address: str, kind: str) -> StateReport:
    """Return the state of the device at this PCI address (`kind`: `cuda`, `hip`); the note says what to install for a source."""
    try:
        answer = subprocess.run(
            _command(address, kind),
            input=msgspec.json.encode(AskState()) + b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=_ASK_ONCE_S,
            env=worker_environment(interpret=False),
            cwd=PROJECT_ROOT,
        )
        reply = REPLIES.decode(answer.stdout)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError):
        return StateReport(DeviceReading(), "", "the process that reads the driver's library did not answer")
    assert isinstance(reply, StateReport)
    return reply


def _command(address: str, kind: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "harness.node.telemetry.sampler_process", address, kind)


class SamplerLost(Exception):
    """The sampler ended, hung, or sent an invalid reply."""


class Telemetry:
    """One GPU, sampled by a process of its own from the first request until `close`. Use it on one event loop only.

    A lost sampler is started again once. After a second loss there are no values (`source` is empty) and `note` says why.
    There is one window at a time: `begin` drops an open one. `state` works at any time.
    """

    def __init__(self, address: str, kind: str, *, command: Sequence[str] | None = None) -> None:
        """`address` is the PCI address (`0000:c1:00.0`), `kind` is `cuda` or `hip`. `command` starts a different sampler."""
        self._command = _command(address, kind) if command is None else tuple(command)
        self._turn = asyncio.Lock()
        self._child: asyncio.subprocess.Process | None = None
        self._starts = 0
        self._losses = 0
        self._begun = False
        self.source = ""
        """`nvml`, `amdsmi` or `sysfs`; empty before the first answer, and if no source reads the device."""
        self.note = ""
        """Why values are missing, and how to get them."""
        self.provenance: Provenance | None = None
        """Hardware and driver of the device; `None` before the first state."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def state(self, own_pids: Collection[int] | None = None) -> DeviceReading:
        """Return the device's state. With `own_pids` (their children are ours too) it counts the processes of others."""
        pids = None if own_pids is None else tuple(own_pids)
        async with self._turn:
            reply = await self._ask(AskState(pids))
        if not isinstance(reply, StateReport):
            return DeviceReading()
        self.source, self.note, self.provenance = reply.source, reply.note, reply.provenance
        return reply.state

    async def begin(self, own_pids: Collection[int] = ()) -> None:
        """Begin a window; the first reading is taken when this returns."""
        async with self._turn:
            self._begun = isinstance(await self._ask(BeginSampling(tuple(own_pids))), Begun)

    async def end(self) -> Watched:
        """End the window and return its summary and samples, which are empty if its sampler was lost."""
        async with self._turn:
            begun, self._begun = self._begun, False
            starts = self._starts
            reply = await self._ask(EndSampling()) if begun else None
        if isinstance(reply, Watched) and self._starts == starts:
            self.source = reply.window.source
            return reply
        note = self.note or "the telemetry process was lost during the window"
        return Watched(Window(source="", seconds=0.0), note=note)

    async def close(self) -> None:
        """End the sampler; a later request starts a new one."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGKILL)
        await child.communicate()  # `wait` alone leaves its pipes open

    async def _ask(self, request: Request) -> Reply | None:
        """The reply, if needed of a second sampler; `None` if both were lost."""
        for _ in range(2):
            if self._losses == MOST_LOSSES:
                return None
            try:
                return await self._exchange(request)
            except SamplerLost as error:
                await self.close()
                self._losses += 1
                if self._losses == MOST_LOSSES:
                    self.source, self.note = "", str(error)
            except BaseException:
                # The next request would get the reply to this one.
                await self.close()
                raise
        return None

    async def _exchange(self, request: Request) -> Reply:
        """Send a request to the sampler process, which is started if necessary, and return its reply. Raises `SamplerLost`."""
        try:
            async with asyncio.timeout(ANSWER_S):
                child = self._child or await self._start()
                assert child.stdin is not None
                assert child.stdout is not None
                child.stdin.write(msgspec.json.encode(request) + b"\n")
                await child.stdin.drain()
                return REPLIES.decode(await child.stdout.readuntil(b"\n"))
        except TimeoutError:
            raise SamplerLost(f"the telemetry process did not answer within {ANSWER_S:g} s") from None
        except (OSError, asyncio.IncompleteReadError):
            raise SamplerLost("the telemetry process ended twice") from None
        except (msgspec.DecodeError, asyncio.LimitOverrunError):
            raise SamplerLost("the telemetry process sent an invalid reply") from None

    async def _start(self) -> asyncio.subprocess.Process:
        """Start a new sampler process in the place of an old one, if there is one. Its environment has no keys."""
        self._starts += 1
        self._child = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=worker_environment(interpret=False),
            cwd=PROJECT_ROOT,
            start_new_session=True,
            limit=MOST_REPLY_BYTES,
        )
        return self._child
