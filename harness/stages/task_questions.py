"""Questions to a judge about a task, without a candidate: how strong its oracle is, and the arguments of its cases."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec

from harness.processes.pool import DevicePool
from harness.processes.slot import Slot
from harness.wire import limits
from harness.wire.channels.channel import BadFrame
from harness.wire.channels.encoding import ENCODER
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.messages.guest import Alive
from harness.wire.messages.judge import JUDGE_REPORTS, JudgeReport, Specified, Specify, Weigh, Weighed
from suites.task import Task

from .judged_task import script_worker

MOST_REPORT_BYTES = 64 << 20
RECORDINGS = 4
"""Runs of a task's script that a question may need."""
Answer = TypeVar("Answer", Weighed, Specified)


async def specify_cases(pool: DevicePool, task: Task, target: str) -> msgspec.Raw:
    """The arguments of a task's open cases at `gpu` sizes, as `CASE_SPECS`; only a judge runs the task's code.

    The task is resolved for the target. `HarnessError` if its code fails.
    """
    async with pool.slot() as slot:
        answer = await ask_judge(slot.interpreter or slot, Specify(task=task), Specified, target)
    if answer.problem:
        raise HarnessError(f"{task.id}: {answer.problem}")
    return answer.cases


async def ask_judge(slot: Slot, question: Weigh | Specify, kind: type[Answer], target: str) -> Answer:
    """The judge's answer of this `kind`; `WorkerDied` if there is none in time, and then the slot's judge is discarded."""
    channel = await slot.channel()
    limit_s = limits.ORACLE_S + (RECORDINGS * limits.script_s() if question.task.script else 0)
    try:
        async with (
            asyncio.timeout(limit_s),
            script_worker(slot, channel, question.task, target),
        ):
            await channel.send(ENCODER.encode(question))
            answer: JudgeReport = Alive()
            while isinstance(answer, Alive):
                answer = JUDGE_REPORTS.decode(await channel.receive(MOST_REPORT_BYTES))
    except BaseException as error:
        slot.discard()
        if not isinstance(error, (TimeoutError, EOFError, BadFrame, msgspec.DecodeError)):
            raise
        raise WorkerDied(
            f"the judge gave no answer about {question.task.id} within {limit_s:.0f} s"
        ) from error
    if not isinstance(answer, kind):
        raise WorkerDied(f"the judge answered another question than the one about {question.task.id}")
    return answer
