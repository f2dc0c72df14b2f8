"""Processes that run a benchmark's texts: several requests in turn, so that kernels compile once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

import msgspec

from harness.processes.pool import DevicePool
from harness.processes.process_endings import doubt_end
from harness.processes.slot import Slot
from harness.processes.starting.servers import Child
from harness.stages.judged_task import SCRIPT_ROLE, gpu_of
from harness.stages.retries import settle, try_alone
from harness.wire import limits
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.channel import ENCODER, BadFrame, decode_message
from harness.wire.errors import NoReport, WorkerDied
from harness.wire.messages.program import RanProgram, ScriptRequest
from harness.wire.messages.script import RanScript
from harness.wire.messages.server import status_words
from suites.own.evidence import FirstCallSeen, InputsSeen
from suites.source.package import PackageView

Answer = TypeVar("Answer", RanScript, RanProgram, str, FirstCallSeen, InputsSeen)
Result = TypeVar("Result")


class ScriptProcess:
    """One sandboxed process, ready for requests."""

    def __init__(self, child: Child, channel: AsyncChannel, subject: str, *, again: bool) -> None:
        """`subject` names the text that runs, in messages. `again`: the second try, after a `JudgeAgain`."""
        self._child = child
        self._channel = channel
        self._subject = subject
        self._again = again

    async def ask(self, request: ScriptRequest, kind: type[Answer]) -> Answer:
        """Send a request and return the answer. Raises `NoReport`, or as `check_end` if the end is not the text's own."""
        with suppress(EOFError):  # the process has ended: `receive` raises the reason
            await self._channel.send(ENCODER.encode(request))
        limit_s = limits.script_s()
        try:
            answer = await self._receive(limit_s)
        except TimeoutError:
            raise NoReport(
                f"{self._subject} does not end within {limit_s:.0f} s here", is_slow=True
            ) from None
        return decode_message(msgspec.msgpack.Decoder(kind), answer)

    async def greet(self) -> None:
        """Wait until the process is ready, which no text delays. Raises `WorkerDied` if it is not in time, else as `ask`."""
        try:
            await self._receive(limits.GUEST_START_S)
        except TimeoutError:
            raise WorkerDied(
                f"the process of {self._subject} was not ready after {limits.GUEST_START_S:.0f} s"
            ) from None

    async def _receive(self, limit_s: float) -> bytes:
        """Return the next report. Raises `TimeoutError` after `limit_s`, and `NoReport` if the process ended.

        An end that the machine may have caused raises `JudgeAgain`, unless this is the second try.
        """
        try:
            async with asyncio.timeout(limit_s):
                return await self._channel.receive(limits.RECORDING_BYTES)
        except (EOFError, BadFrame) as error:
            ended = await self._child.wait(limits.END_S)
            settle(doubt_end(ended, f"the process of {self._subject}"), again=self._again)
            raise NoReport(
                f"{self._subject} ended its process: {ended.why or status_words(ended.status)}"
            ) from error


Start = Callable[[], AbstractAsyncContextManager[ScriptProcess]]


async def run_in_slot(
    pool: DevicePool,
    subject: str,
    work: Callable[[Start], Awaitable[Result]],
    package: PackageView | None = None,
) -> Result:
    """Return the result of `work`, which gets a function that starts processes in a slot of the pool.

    `package`: what the processes may import and read besides installed packages.

    If an end is unexplained (`JudgeAgain`), the work is done once more, with no other slot in use.
    """

    async def attempt(why: str) -> Result:
        async with pool.slot(alone=bool(why)) as slot, pool.leases.using(slot):
            return await work(partial(_start, slot, subject, package, again=bool(why)))

    return await try_alone(attempt)


@asynccontextmanager
async def _start(
    slot: Slot, subject: str, package: PackageView | None, *, again: bool
) -> AsyncIterator[ScriptProcess]:
    """Start a process on the slot's device; it ends with the block."""
    child, channel = await slot.server.spawn(
        SCRIPT_ROLE, cpu_limit_s=limits.SCRIPT_CPU_S, sandboxed=True, device=gpu_of(slot), package=package
    )
    process = ScriptProcess(child, channel, subject, again=again)
    try:
        await process.greet()
        yield process
    finally:
        channel.close()
        child.end()
