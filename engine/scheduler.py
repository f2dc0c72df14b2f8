"""Runs the instances of a session at the same time; an error of one instance ends only that instance."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from engine.changes import run_until
from engine.errors import BudgetSpent, JudgeUnable, ModelError, RecordingExhausted, UsageProblem
from engine.examining import examine
from engine.instance import InstanceContext
from engine.methods import Method
from engine.shared import Shared
from engine.spreading import spread
from harness import HarnessError, Verdict
from harness.wire.errors import NoDeviceLeft
from sessions.events import EndReason, InstanceFinished, InstanceStarted
from sessions.state import CURABLE
from suites import SuiteError, Task


class Ending(NamedTuple):
    """Why an instance ended."""

    reason: EndReason
    message: str = ""


async def run_instances(shared: Shared, method: Method, tasks: Sequence[Task]) -> tuple[str, ...]:
    """Run the unfinished instances of the session; returns the keys of instances that a resume can continue.

    An error of model, budget or judge ends its instance. Two kinds of error end all instances: a pool without devices
    (`NoDeviceLeft`), and any other exception, which is a bug. They are raised as an `ExceptionGroup`, and the journal
    has all finished work.
    """
    async with asyncio.TaskGroup() as group:
        running = [
            group.create_task(
                _supervise(shared, method, task, number), name=f"instance/{task.short_id}#{number}"
            )
            for number in range(1, shared.plan.instances + 1)
            for task in tasks
        ]
    return tuple(key for key in (task.result() for task in running) if key is not None)


async def _supervise(shared: Shared, method: Method, task: Task, number: int) -> str | None:
    """Run one instance to its end; returns its key if a resume can continue it."""
    context = InstanceContext(shared, task, number)
    state = shared.recorder.state.instances.get(context.key)
    if state is not None and state.finished is not None and not state.curable:
        return None
    if state is None or state.finished is not None:
        shared.recorder.record(InstanceStarted(task=task.id, instance=number))
    ending = await _run(shared, method, context)
    await context.close()
    if ending.reason is not EndReason.INFRA_ERROR:
        ending = await _examine(shared, task, context.key) or ending
    await shared.recorder.record_durable(
        InstanceFinished(
            task=task.id,
            instance=number,
            reason=ending.reason,
            best=_best(shared, context.key),
            message=ending.message,
        )
    )
    return context.key if ending.reason in CURABLE else None


async def _run(shared: Shared, method: Method, context: InstanceContext) -> Ending:
    try:
        ended = await run_until(
            method.run(context), lambda: context.key in shared.recorder.state.stops, shared.changes
        )
        if ended is not None:
            return Ending(ended)
        await context.abandon_all("a person stopped the instance")
        return Ending(EndReason.STOPPED, f"by {shared.recorder.state.stops[context.key]}")
    except RecordingExhausted as error:
        return Ending(EndReason.RECORDING_EXHAUSTED, str(error))
    except ModelError as error:
        return Ending(EndReason.MODEL_FAILED, f"{error.reason}: {error}")
    except BudgetSpent as error:
        return Ending(EndReason.BUDGET, str(error))
    except NoDeviceLeft:
        raise  # no instance can continue: the session stops
    except (JudgeUnable, HarnessError, SuiteError, UsageProblem) as error:
        return Ending(EndReason.INFRA_ERROR, str(error))


async def _examine(shared: Shared, task: Task, key: str) -> Ending | None:
    """Examine the instance's winner and, with `spread`, measure it on every GPU.

    Returns an ending if the judge fails.
    """
    try:
        await examine(shared, task, key)
        await spread(shared, task, key)
    except NoDeviceLeft:
        raise
    except (HarnessError, SuiteError) as error:
        return Ending(EndReason.INFRA_ERROR, f"the exam or measurement of the winner did not finish: {error}")
    return None


def _best(shared: Shared, key: str) -> str | None:
    state = shared.recorder.state
    best = state.instances[key].best
    return best if best is not None and state.attempt(best).verdict is Verdict.CORRECT else None
