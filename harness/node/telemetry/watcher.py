"""Asks a sampler process; whatever becomes of that, the caller gets an answer."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Self

import msgspec

from harness.linux.process_environment import PROJECT_ROOT, worker_environment
from harness.wire.latency import DeviceState, Window

from .samples import REPLIES, AskState, Begin, Begun, End, Ended, Reply, Request, StateTold, Watched

ANSWER_S = 10.0
"""A library that takes longer hangs; the first answer includes its start."""
MOST_LOSSES = 2
MOST_REPLY_BYTES = 16 << 20


class SamplerLost(Exception):
    """The sampler ended, hung or answered nonsense."""


class Telemetry:
    """
    One GPU, watched by a process of its own from the first question until this is left. Not to be shared between loops.

    A sampler that is lost is started anew once; after that the device tells nothing (`source` empty) and `note` says why.
    Windows are one at a time: `begin` forgets one that is open. `state` may be asked at any time.
    """

    def __init__(self, address: str, kind: str, *, command: Sequence[str] | None = None) -> None:
        """`kind`: `cuda` or `hip`; `address` on the PCI bus, as `0000:c1:00.0`. `command` runs another sampler."""
        own = (sys.executable, "-m", "harness.node.telemetry.sampler_process", address, kind)
        self._command = own if command is None else tuple(command)
        self._turn = asyncio.Lock()
        self._child: asyncio.subprocess.Process | None = None
        self._starts = 0
        self._losses = 0
        self._begun = False
        self._energy: bool | None = None
        self.source = ""
        """Who tells: `nvml`, `amdsmi`, `sysfs`; empty before the first answer, and where nothing tells."""
        self.note = ""
        """Why nothing, or less, is told, and what to do about it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def state(self, own_pids: Collection[int] | None = None) -> DeviceState:
        """What the device is now; with process ids (of ours; their children count too) processes of others are counted."""
        pids = None if own_pids is None else tuple(own_pids)
        async with self._turn:
            reply = await self._ask(AskState(pids))
        if not isinstance(reply, StateTold):
            return DeviceState()
        self.source, self.note = reply.source, reply.note
        return reply.state

    async def counts_energy(self) -> bool:
        """Whether the device tells the energy that it took; asked of it once."""
        if self._energy is None:
            self._energy = (await self.state()).energy_j is not None
        return self._energy

    async def begin(self, own_pids: Collection[int] = ()) -> None:
        """A window begins; the device was read once when this returns."""
        async with self._turn:
            self._begun = isinstance(await self._ask(Begin(tuple(own_pids))), Begun)

    async def end(self) -> Watched:
        """The window ends: what it amounts to, and its samples. Of one whose sampler was lost nothing is told."""
        async with self._turn:
            begun, self._begun = self._begun, False
            starts = self._starts
            reply = await self._ask(End()) if begun else None
        if isinstance(reply, Ended) and self._starts == starts:
            self.source = reply.watched.window.source
            return reply.watched
        lost = self.note or "what watched the device was lost during the window"
        return Watched(Window(source="", seconds=0.0), note=lost)

    async def close(self) -> None:
        """End the sampler; a later question would start it anew."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGKILL)
        await child.wait()

    async def _ask(self, request: Request) -> Reply | None:
        """The answer, if need be of a second sampler; `None` where there is none to be had."""
        for _ in range(2):
            if self._losses == MOST_LOSSES:
                return None
            try:
                return await self._exchange(request)
            except SamplerLost as lost:
                await self.close()
                self._losses += 1
                if self._losses == MOST_LOSSES:
                    self.source, self.note = "", str(lost)
            except BaseException:
                # A question without its answer would leave that to the next one.
                await self.close()
                raise
        return None

    async def _exchange(self, request: Request) -> Reply:
        try:
            async with asyncio.timeout(ANSWER_S):
                child = self._child or await self._start()
                assert child.stdin is not None
                assert child.stdout is not None
                child.stdin.write(msgspec.json.encode(request) + b"\n")
                await child.stdin.drain()
                return REPLIES.decode(await child.stdout.readuntil(b"\n"))
        except TimeoutError:
            raise SamplerLost(f"what watches the device did not answer within {ANSWER_S:g} s") from None
        except (OSError, asyncio.IncompleteReadError):
            raise SamplerLost("what watches the device ended twice") from None
        except (msgspec.DecodeError, asyncio.LimitOverrunError):
            raise SamplerLost("what watches the device answered something else than it was asked") from None

    async def _start(self) -> asyncio.subprocess.Process:
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
