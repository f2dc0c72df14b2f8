"""Runs the instances of a session at the same time; an error of one instance ends only that instance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from engine.errors import BudgetSpent, JudgeUnable, ModelError, RecordingExhausted, StopRuleMet, UsageProblem
from engine.judge.evaluating import cancelled_evaluation
from engine.judge.profiling import take_asked
from engine.judge.winners import examine, measure_on
from engine.methods import Context, Method
from engine.methods.proposing import run_edit
from engine.run.instance import InstanceContext
from engine.run.person import run_until
from engine.run.shared import Shared
from harness import HarnessError
from harness.wire.errors import NoDeviceLeft
from sessions.events import (
    DecisionMade,
    DecisionUndone,
    EndReason,
    InstanceFinished,
    InstanceStarted,
    MeasureAsked,
    Notice,
    WinnerMeasured,
)
from sessions.names import instance_key, split_attempt
from sessions.state.state import EXTENDABLE
from sessions.store.decidable import find_attempt
from suites import SuiteError, Task


class Ending(NamedTuple):
    """Why an instance ended."""

    reason: EndReason
    message: str = ""


async def run_instances(
    shared: Shared,
    method: Method,
    ready: Sequence[Task],
    later: Iterable[Coroutine[Any, Any, Task | None]] = (),
) -> tuple[str, ...]:
    """Run the unfinished instances of the session; returns the keys of instances that a resume can continue.

    The instances of a task in `later` start when its coroutine returns the task; with `None` the session goes on without it.
    Raises `UsageProblem` if no task is left.

    An error of model, budget or judge ends its instance. Two kinds of error end all instances: a pool without devices
    (`NoDeviceLeft`), and any other exception, which is a bug. They are raised as an `ExceptionGroup`, and the journal
    has all finished work.
    """
    jobs: dict[str, asyncio.Task[None]] = {}
    measures: dict[int, asyncio.Task[None]] = {}
    exams: dict[str, asyncio.Task[None]] = {}
    tasks = list(ready)

    async def take(coming: Coroutine[Any, Any, Task | None]) -> None:
        task = await coming
        if task is not None:
            tasks.append(task)

    async with asyncio.TaskGroup() as group:

        def begin(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            task = group.create_task(work, name=name)
            task.add_done_callback(lambda _: shared.changes.announce())
            return task

        arrivals = [begin(take(coming), "arrival") for coming in later]
        while True:
            started = False
            for key, (task, number) in _instances(shared, tasks).items():
                if _is_due(shared, key, jobs.get(key)):
                    jobs[key] = begin(_supervise(shared, method, task, number), f"instance/{key}")
                    started = True
                    # The first prompts of thousands of instances at once would take the loop for seconds.
                    await asyncio.sleep(0)
            if started:
                continue  # look again, because the state may have changed
            for key, (task, _) in _instances(shared, tasks).items():
                winner = _decided_winner(shared, key)
                if winner and winner not in exams:
                    exams[winner] = begin(_examine_decided(shared, task, key), f"exam/{winner}")
            for asked in shared.recorder.state.measures:
                if asked.seq not in measures:
                    measures[asked.seq] = begin(_measure(shared, tasks, asked), f"measure/{asked.attempt}")
            for profile in shared.recorder.state.profiles_asked:
                if profile.seq not in measures:
                    work = take_asked(shared, tasks, profile)
                    measures[profile.seq] = begin(work, f"profile/{profile.attempt}")
            if all(job.done() for job in (*jobs.values(), *measures.values(), *exams.values(), *arrivals)):
                break
            await shared.changes.next()
        shared.changes.closed = True
    if not tasks:
        raise UsageProblem("no task of this session can be judged; the warnings say why")
    return tuple(key for key in jobs if shared.recorder.state.instances[key].curable)


def _instances(shared: Shared, tasks: Sequence[Task]) -> dict[str, tuple[Task, int]]:
    """Returns task and number of each instance of the session, by its key."""
    planned = [
        (task, number)
        for number in range(1, shared.plan.instances + 1)
        for task in tasks
        if not shared.plan.candidates or instance_key(task.id, number) in shared.plan.candidates
    ]
    by_name = {task.id: task for task in tasks}
    forks = [(by_name[fork.task], fork.instance) for fork in shared.recorder.state.forks.values()]
    return {instance_key(task.id, number): (task, number) for task, number in planned + forks}


def _is_due(shared: Shared, key: str, job: asyncio.Task[None] | None) -> bool:
    """True if an instance has work and no task does it: it was never run here, or a person opened it again."""
    state = shared.recorder.state.instances.get(key)
    if job is None:
        return state is None or state.finished is None or state.curable
    return job.done() and state is not None and state.finished is None


def _decided_winner(shared: Shared, key: str) -> str:
    """Returns the unexamined winner that a person's decisions gave a finished instance; empty if there is none."""
    instance = shared.recorder.state.instances.get(key)
    if instance is None or instance.finished is None or instance.curable or shared.plan.options.predictions:
        return ""
    best = instance.best_correct
    if best is None or best.exam is not None:
        return ""
    is_decided = any(
        isinstance(command, DecisionMade | DecisionUndone) and split_attempt(command.attempt).instance == key
        for command in shared.recorder.state.commands
    )
    return best.attempt if is_decided else ""


async def _examine_decided(shared: Shared, task: Task, key: str) -> None:
    """Examine the winner of a finished instance. If the budget or the judge ends the exam, a notice says so."""
    ending = await _examine(shared, task, key, Ending(EndReason.ITERATIONS))
    if ending.message:
        shared.recorder.record(Notice(level="error", message=f"{key}: {ending.message}"))


async def _supervise(shared: Shared, method: Method, task: Task, number: int) -> None:
    """Run one instance to its end."""
    key = instance_key(task.id, number)
    state = shared.recorder.state.instances.get(key)
    if state is None or state.finished is not None:
        shared.recorder.record(InstanceStarted(task=task.id, instance=number))
    while True:
        # A command may be in the journal before the engine acts on it.
        shared.raise_budget()
        context = InstanceContext(shared, task, number)
        ending = await _complete(shared, method, task, context)
        if not _goes_on(ending, context):
            break
    best = shared.recorder.state.instances[key].best_correct
    name = best.attempt if best is not None else None
    finished = InstanceFinished(
        task=task.id, instance=number, reason=ending.reason, best=name, message=ending.message
    )
    await shared.recorder.record_durable(finished)


async def _complete(shared: Shared, method: Method, task: Task, context: InstanceContext) -> Ending:
    """Run the method, then examine the winner unless the method has to go on. Predictions are not examined."""
    fork = shared.recorder.state.forks.get(context.key)
    work = run_edit if fork is not None and fork.source else method.run
    ending = await _run(shared, work, context)
    await context.close()
    if ending.reason is EndReason.INFRA_ERROR or _goes_on(ending, context) or context.options.predictions:
        return ending
    return await _examine(shared, task, context.key, ending)


def _goes_on(ending: Ending, context: InstanceContext) -> bool:
    """True if the instance got more iterations, or a spent budget more USD, while the instance ended."""
    if ending.reason is EndReason.BUDGET:
        return context.has_more_usd
    return ending.reason in EXTENDABLE and context.is_extended


async def _measure(shared: Shared, tasks: Sequence[Task], asked: MeasureAsked) -> None:
    """Time an attempt again on the GPUs that a person named. A failed GPU or a spent budget gives a notice and `cancelled`."""
    attempt, instance = find_attempt(shared.recorder.state, asked.attempt)
    task = next(task for task in tasks if task.id == instance.task)
    devices = {device.name: device for device in shared.judge.devices}
    for name in asked.devices:
        try:
            if name not in devices:
                raise HarnessError(f"the session runs on {', '.join(devices)} now")
            await measure_on(shared, task, attempt, devices[name])
        except NoDeviceLeft:
            raise
        except (BudgetSpent, HarnessError, SuiteError) as error:
            words = f"{asked.attempt} was not measured on GPU {name}: {error}"
            shared.recorder.record(Notice(level="error", message=words))
            # An answer to the request: without one it stays open, and a resume repeats it.
            evaluation = cancelled_evaluation(task.id, name, str(error))
            await shared.recorder.record_durable(
                WinnerMeasured(attempt=asked.attempt, device=name, evaluation=evaluation)
            )


async def _run(
    shared: Shared, work: Callable[[Context], Coroutine[Any, Any, EndReason]], context: InstanceContext
) -> Ending:
    try:
        async with shared.budget.wall_time():
            ended = await run_until(
                work(context),
                lambda: context.key in shared.recorder.state.retired or bool(shared.budget.reached),
                shared.changes,
            )
        if ended is not None:
            return Ending(ended)
        if context.key not in shared.recorder.state.retired:
            raise BudgetSpent(shared.budget.reached)
        await context.abandon_all("a person retired the instance")
        return Ending(EndReason.RETIRED, f"by {shared.recorder.state.retired[context.key]}")
    except RecordingExhausted:
        return Ending(EndReason.RECORDING_EXHAUSTED)
    except ModelError as error:
        return Ending(EndReason.MODEL_FAILED, f"{error.reason}: {error}")
    except StopRuleMet as stop:
        return Ending(stop.reason, str(stop))
    except BudgetSpent as error:
        await context.cut(str(error))
        return Ending(EndReason.BUDGET, str(error))
    except NoDeviceLeft:
        raise  # no instance can continue: the session stops
    except (JudgeUnable, HarnessError, SuiteError, UsageProblem) as error:
        return Ending(EndReason.INFRA_ERROR, str(error))


async def _examine(shared: Shared, task: Task, key: str, ending: Ending) -> Ending:
    """Examine the instance's winner.

    Returns the instance's ending: another one if the judge fails, and another message if the budget ends.
    """
    try:
        async with shared.budget.wall_time():
            await examine(shared, task, key)
    except BudgetSpent as error:
        missing = f"the exam of the winner did not finish: {error}"
        return ending if ending.reason is EndReason.BUDGET else Ending(ending.reason, missing)
    except NoDeviceLeft:
        raise
    except (HarnessError, SuiteError) as error:
        return Ending(EndReason.INFRA_ERROR, f"the exam of the winner did not finish: {error}")
    return ending
