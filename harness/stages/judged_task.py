"""A task as the judge uses it: resolved for one device. Also the seam to recorded tasks: their cases are calls of a script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from harness.processes.slot import Slot
from harness.wire import limits
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.encoding import ENCODER
from harness.wire.device import Device
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.messages.judge import Attach
from harness.wire.messages.script import ADAPTER, CALLS_FILE
from suites.dtypes import task_on
from suites.task import EntryPoint, Task

SCRIPT_ROLE = "script"


def resolve_task(task: Task, target: str, *, on_gpu: bool) -> Task:
    """Return the task with the target's dtypes, the device's sizes and cases, and the function that the judge calls.

    `on_gpu`: else the interpreter's sizes, without cases for a GPU only. Raises `NoSuchDtype` if the target lacks a dtype.
    """
    cases = tuple(
        msgspec.structs.replace(case, cpu=case.gpu) if on_gpu else case
        for case in task.cases
        if on_gpu or not case.only_gpu
    )
    entry_points = task.entry_points if task.script is None else (called_entry(task),)
    return task_on(msgspec.structs.replace(task, cases=cases, entry_points=entry_points), target)


def called_entry(task: Task) -> EntryPoint:
    """Return the function that the judge calls: of a recorded task the one in `calls.py`."""
    if task.script is None:
        return task.entry_points[0]
    return EntryPoint(name=ADAPTER, signature=task.script.signature)


def with_calls(task: Task, source: str) -> str:
    """Return the source with the text of the task's `calls.py` behind it. Other tasks' sources are returned as they are."""
    if task.script is None:
        return source
    file = task.folder / CALLS_FILE
    try:
        return f"{source.rstrip()}\n\n\n{file.read_text(encoding='utf-8')}"
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"{file} cannot be read: {error}; record the task again") from error


def gpu_of(slot: Slot) -> Device | None:
    """Return the slot's GPU; `None` for the interpreter."""
    return None if slot.device.kind == "cpu" else slot.device


@asynccontextmanager
async def script_worker(slot: Slot, channel: AsyncChannel, task: Task, target: str) -> AsyncIterator[None]:
    """Give the slot's judge a script worker for its next request, if the task needs one; the worker ends with the block."""
    if task.script is None:
        yield
        return
    child, _, end = await slot.server.spawn_for_another(
        SCRIPT_ROLE, cpu_limit_s=limits.SCRIPT_CPU_S, sandboxed=True, device=gpu_of(slot)
    )
    try:
        try:
            await channel.send(ENCODER.encode(Attach(target=target)), (end.fileno(),))
        except EOFError as error:
            raise WorkerDied("the judge was lost before its first request") from error
        finally:
            end.close()
        yield
    finally:
        child.end()
