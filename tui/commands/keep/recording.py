"""Gives tasks of public benchmarks to commands that judge: the calls of a test are recorded once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from harness import DevicePool
from harness.failures import first_failure
from harness.node.selection import targets_for, wait_for_devices
from harness.processes.gpus.capacity import RECORDED_CASE_BYTES
from harness.recording.recorder import find_or_record
from harness.wire.errors import NotRecorded
from suites import (
    SuiteError,
    Task,
    find_public_task,
    find_task,
    load_public_suite,
    load_task,
    public_suite_names,
)
from suites.public.recorded import find_recorded
from suites.public.task import PublicTask
from tui.diagnostics import Complaint, say


class NamedTasks(NamedTuple):
    """The tasks of a run, by full name. `load_task` knows full names; a benchmark's own name of a task may differ."""

    ready: tuple[str, ...]
    unrecorded: tuple[str, ...] = ()
    """Tasks without a valid recording."""
    left_out: Mapping[str, str] = {}
    """Why a task cannot be judged."""


def judged_task(name: str, registry: Path, *, devices: Sequence[str], targets: Sequence[str]) -> Task:
    """Return a task by name or folder. A task of a public benchmark is recorded first, if it has no valid recording.

    Raises `SuiteError` for an unknown task, and `Complaint` if no call of it can be judged.
    """
    (full_name,) = record_missing([name], registry, devices=devices, targets=targets).ready
    return find_task(full_name, registry=registry)


def find_unrecorded(names: Sequence[str], registry: Path, *, devices: Sequence[str]) -> NamedTasks:
    """Return the named tasks, of which some are not recorded yet. Nothing is recorded.

    Raises `SuiteError` for an unknown task, and `Complaint` if the benchmarks say of all named tasks why they cannot be judged.
    """
    find = _finder(registry)
    public = {task.id: task for name in names if (task := find(name)) is not None}
    ready = [name for name in names if find(name) is None]
    if not public:
        return NamedTasks(tuple(ready))
    if not ready and all(task.unsupported for task in public.values()):
        raise _nothing_to_judge({task.id: task.unsupported for task in public.values()})
    chosen = asyncio.run(wait_for_devices(devices, on_wait=say))
    missing = _missing(public.values(), registry, on_gpu=chosen[0].kind != "cpu")
    ready += [name for name in public if name not in missing]
    return NamedTasks(tuple(ready), tuple(missing))


def record_missing(
    names: Sequence[str], registry: Path, *, devices: Sequence[str], targets: Sequence[str]
) -> NamedTasks:
    """Record the named tasks of public benchmarks that have no valid recording, side by side.

    Raises `SuiteError` for an unknown task, and `Complaint` if no named task can be judged.
    """
    find = _finder(registry)
    public = {name: task for name in names if (task := find(name)) is not None}
    reasons = _record(list(public.values()), registry, devices, targets)
    full_names = [public[name].id if name in public else name for name in names]
    if reasons and len(reasons) == len(set(full_names)):
        raise _nothing_to_judge(reasons)
    return NamedTasks(tuple(name for name in full_names if name not in reasons), left_out=reasons)


def judged_tasks(
    names: Iterable[str], registry: Path, *, devices: Sequence[str], targets: Sequence[str]
) -> dict[str, Task | str]:
    """Return for each full name the task, recorded if it is of a public benchmark, or why it cannot be judged."""
    find = _finder(registry)
    tasks: dict[str, Task | str] = {}
    public: dict[str, PublicTask] = {}
    for name in names:
        try:
            public_task = find(name)
            if public_task is None:
                tasks[name] = load_task(name, registry=registry)
            else:
                public[name] = public_task
        except SuiteError as error:
            tasks[name] = str(error)
    reasons = _record(list(public.values()), registry, devices, targets)
    for name, task in public.items():
        tasks[name] = reasons.get(task.id) or load_task(task.id, registry=registry)
    return tasks


def _nothing_to_judge(reasons: Mapping[str, str]) -> Complaint:
    return Complaint("; ".join(f"{name} cannot be judged: {why}" for name, why in reasons.items()))


def _finder(registry: Path) -> Callable[[str], PublicTask | None]:
    """Return a function that finds the task of a public benchmark by name; `None` for other tasks. Each clone is read once."""
    suites = public_suite_names(registry=registry)
    tasks_of = cache(partial(load_public_suite, registry=registry))

    def find(name: str) -> PublicTask | None:
        suite = name.partition("/")[0]
        return find_public_task(name, tasks_of(suite).tasks) if suite in suites else None

    return find


def _missing(tasks: Iterable[PublicTask], registry: Path, *, on_gpu: bool) -> dict[str, PublicTask]:
    """Return the tasks without a valid recording, by full name."""
    return {task.id: task for task in tasks if find_recorded(task, registry, for_gpu=on_gpu) is None}


def _record(
    tasks: Sequence[PublicTask], registry: Path, devices: Sequence[str], targets: Sequence[str]
) -> dict[str, str]:
    """Record the tasks without a valid recording on all devices; return why a task cannot be judged, by full name."""
    return asyncio.run(_record_missing(tasks, registry, devices, targets)) if tasks else {}


async def _record_missing(
    tasks: Sequence[PublicTask], registry: Path, devices: Sequence[str], targets: Sequence[str]
) -> dict[str, str]:
    chosen = await wait_for_devices(devices, on_wait=say)
    missing = _missing(tasks, registry, on_gpu=chosen[0].kind != "cpu")
    reasons = {name: task.unsupported for name, task in missing.items() if task.unsupported}
    able = [task for name, task in missing.items() if name not in reasons]
    if not able:
        return reasons
    tests = f"the test of {able[0].id}" if len(able) == 1 else f"the tests of {len(able)} tasks"
    say(f"records the calls of {tests}, once")
    target = targets_for(chosen, targets)[0]
    pool = DevicePool([device.name for device in chosen], case_bytes=RECORDED_CASE_BYTES, timed=False)

    async def record(public: PublicTask) -> None:
        try:
            await find_or_record(public, registry, pool=pool, target=target)
        except NotRecorded as reason:
            reasons[public.id] = str(reason)

    async with pool:
        try:
            async with asyncio.TaskGroup() as group:
                for task in able:
                    group.create_task(record(task), name=task.id)
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
    return reasons
