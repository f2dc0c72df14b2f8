"""Protects the engine's conversation with a compiling worker: errors of ours end it at once and never become the candidate's."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.stages.compilation import Compiler, _StepLimit
from harness.wire.calls.tensors import NO_CASES
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.channel import ENCODER
from harness.wire.limits import TimeLimits
from harness.wire.messages.compiler import (
    NUMBERED_BINARIES,
    Binary,
    Compile,
    CompileReport,
    KernelIr,
    KernelWanted,
)
from harness.wire.messages.guest import Hello
from harness.wire.messages.requests import REQUESTS, WorkerAnswer, WorkerMessage
from suites import load_task

WANTED = KernelWanted(7, KernelIr("text", "gfx942", "{}"))
REQUEST = Compile(
    source="",
    entry_point="",
    cases=NO_CASES,
    target="gfx942",
    allowed=(),
    ahead=NO_CASES,
    ahead_configs={},
    host_cpu_s=1.0,
)


class Worker:
    """A compiling worker's end of the line, and the judge's conversation with it."""

    def __init__(self, make: Any) -> None:
        ours, theirs = socket.socketpair()
        self._judge, self.channel = AsyncChannel(ours), AsyncChannel(theirs)
        pool = cast(Any, SimpleNamespace(binaries=SimpleNamespace(make=make)))
        self._compiler = Compiler(pool, load_task("vector_add"), "", TimeLimits())

    async def say(self, answer: WorkerAnswer, nonce: str = "") -> None:
        await self.channel.send(ENCODER.encode(WorkerMessage(nonce, answer)))

    async def ask_for_a_binary(self) -> str:
        """Greet, wait for the request and ask for a kernel; return the nonce of the answers."""
        await self.say(Hello(sandbox=()))
        nonce = REQUESTS.decode(await self.channel.receive()).nonce
        await self.say(WANTED, nonce)
        return nonce

    async def converse(self) -> CompileReport:
        limit = _StepLimit(step_s=20, whole_s=20)
        try:
            async with limit.enforced():
                return await self._compiler._converse(self._judge, REQUEST, limit)
        finally:
            self._judge.close()
            self.channel.close()


async def test_a_binary_that_cannot_be_made_ends_the_wait_with_the_error() -> None:
    async def fail(_: KernelIr) -> Binary:
        raise OSError(24, "Too many open files")

    worker = Worker(fail)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.ask_for_a_binary(), name="worker")
        with pytest.raises(OSError, match="Too many open files"):
            await worker.converse()


async def test_a_report_ends_the_wait_for_binaries_that_the_worker_no_longer_needs() -> None:
    began = asyncio.Event()

    async def never(_: KernelIr) -> Binary:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    worker = Worker(never)

    async def report_without_the_binary() -> None:
        nonce = await worker.ask_for_a_binary()
        await began.wait()
        await worker.say(CompileReport(notes=("compiled here",)), nonce)

    async with asyncio.TaskGroup() as group:
        group.create_task(report_without_the_binary(), name="worker")
        assert (await worker.converse()).notes == ("compiled here",)


async def test_a_binary_comes_with_the_number_of_its_request() -> None:
    async def make(_: KernelIr) -> Binary:
        return Binary(log="made")

    worker = Worker(make)

    async def report_the_binary() -> None:
        nonce = await worker.ask_for_a_binary()
        number, binary = NUMBERED_BINARIES.decode(await worker.channel.receive())
        await worker.say(CompileReport(notes=(f"{number}: {binary.log}",)), nonce)

    async with asyncio.TaskGroup() as group:
        group.create_task(report_the_binary(), name="worker")
        assert (await worker.converse()).notes == ("7: made",)
