"""Tasks whose cases are calls of a script: their script workers, and the text through which a candidate is called."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from harness.processes.slot import Slot
from harness.wire import limits
from harness.wire.async_channel import AsyncChannel
from harness.wire.encoding import ENCODER
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.judge_messages import Attach
from harness.wire.script_messages import ADAPTER, CALLS_FILE
from suites.task import EntryPoint, Task


def as_called(task: Task) -> Task:
    """Return the task as the judge calls it: through the function in `calls.py`. Other tasks are returned as they are."""
    if task.script is None:
        return task
    adapter = EntryPoint(name=ADAPTER, signature=task.script.signature)
    return msgspec.structs.replace(task, entry_points=(adapter,))


def with_calls(task: Task, source: str) -> str:
    """Return the source with the text of the task's `calls.py` behind it. Other tasks' sources are returned as they are."""
    if task.script is None:
        return source
    file = task.folder / CALLS_FILE
    try:
        return f"{source.rstrip()}\n\n\n{file.read_text(encoding='utf-8')}"
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"{file} cannot be read: {error}; record the task again") from error


@asynccontextmanager
async def script_worker(slot: Slot, channel: AsyncChannel, task: Task, target: str) -> AsyncIterator[None]:
    """Give the slot's judge a script worker for its next request, if the task needs one; the worker ends with the block."""
    if task.script is None:
        yield
        return
    child, _, end = await slot.server.spawn_for_another(
        "script",
        cpu_limit_s=limits.SCRIPT_CPU_S,
        sandboxed=True,
        device=None if slot.device.kind == "cpu" else slot.device,
    )
    try:
        try:
            await channel.send(ENCODER.encode(Attach(task=task, target=target)), (end.fileno(),))
        except EOFError as error:
            raise WorkerDied("the judge was lost before its first request") from error
        finally:
            end.close()
        yield
    finally:
        child.end()
