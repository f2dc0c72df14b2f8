"""A task as the judge uses it: resolved for one device, and questions to a judge about it, without a candidate.

Also the seam to recorded tasks: their cases are calls of a script.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec

from harness.processes.pool import DevicePool
from harness.processes.slot import Slot
from harness.wire import limits
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.channel import ENCODER, BadFrame
from harness.wire.device import Device
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.messages.guest import Alive
from harness.wire.messages.judge import JUDGE_REPORTS, Attach, JudgeReport, Specified, Specify, Weigh, Weighed
from harness.wire.messages.script import ADAPTER, CALLS_FILE
from suites.dtypes import task_on
from suites.task import EntryPoint, Task

SCRIPT_ROLE = "script"
MOST_REPORT_BYTES = 64 << 20
RECORDINGS = 4
"""Runs of a task's script that a question may need."""
Answer = TypeVar("Answer", Weighed, Specified)


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
    """Give the slot's judge a script worker, if the task needs one and the judge has none; the worker ends with the block.

    So a timing uses the script worker of its trial: it has a GPU context, compiled kernels and recordings of the script.
    """
    if task.script is None or (slot.script_worker is not None and not slot.script_worker.ended.done()):
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
        slot.script_worker = child
        yield
    finally:
        slot.script_worker = None
        child.end()


async def specify_cases(pool: DevicePool, task: Task, target: str) -> Specified:
    """The arguments of a task's open cases at the target's `gpu` sizes, from a judge. `HarnessError` if the task's code fails."""
    async with pool.slot() as slot:
        answer = await ask_judge(slot.interpreter or slot, Specify(task=task), Specified, target)
    if answer.problem:
        raise HarnessError(f"{task.id}: {answer.problem}")
    return answer


async def ask_judge(slot: Slot, question: Weigh | Specify, kind: type[Answer], target: str) -> Answer:
    """Return the judge's answer to a question about a task; it must be of this `kind`.

    Raises `WorkerDied` if the judge ends, sends anything else, or does not answer in time. The slot's judge is discarded then.
    """
    channel = await slot.channel()
    limit_s = limits.ORACLE_S + (RECORDINGS * limits.script_s() if question.task.script else 0)
    try:
        async with asyncio.timeout(limit_s), script_worker(slot, channel, question.task, target):
            await channel.send(ENCODER.encode(question))
            answer: JudgeReport = Alive()
            while isinstance(answer, Alive):
                answer = JUDGE_REPORTS.decode(await channel.receive(MOST_REPORT_BYTES))
    except BaseException as error:
        slot.discard()
        if not isinstance(error, (TimeoutError, EOFError, BadFrame, msgspec.DecodeError)):
            raise
        why = f"within {limit_s:.0f} s" if isinstance(error, TimeoutError) else f"that can be read ({error})"
        raise WorkerDied(f"the judge gave no answer about {question.task.id} {why}") from error
    if not isinstance(answer, kind):
        raise WorkerDied(f"the judge answered another question than the one about {question.task.id}")
    return answer
