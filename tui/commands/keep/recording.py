"""Gives tasks of public benchmarks to commands that judge: the calls of a test are recorded once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path

from harness import DevicePool
from harness.node.selection import targets_for, wait_for_devices
from harness.processes.gpus.capacity import RECORDED_CASE_BYTES
from harness.recording.errors import NotRecorded
from harness.recording.recorder import find_or_record
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


def judged_task(name: str, registry: Path, *, devices: Sequence[str], targets: Sequence[str]) -> Task:
    """Return a task by name or folder. A task of a public benchmark is recorded first, if it has no valid recording.

    Raises `SuiteError` for an unknown task, and `Complaint` if no call of it can be judged.
    """
    (full_name,) = record_missing([name], registry, devices=devices, targets=targets)
    return find_task(full_name, registry=registry)


def record_missing(
    names: Sequence[str], registry: Path, *, devices: Sequence[str], targets: Sequence[str]
) -> tuple[str, ...]:
    """Record the named tasks of public benchmarks that have no valid recording. Raises as `judged_task`.

    Returns all names as `load_task` knows them: a benchmark's own name of a task may differ.
    """
    find = _finder(registry)
    public_tasks = {name: task for name in names if (task := find(name)) is not None}
    if public_tasks:
        reasons = asyncio.run(_record_missing(list(public_tasks.values()), registry, devices, targets))
        if reasons:
            raise Complaint("; ".join(f"{name} cannot be judged: {why}" for name, why in reasons.items()))
    return tuple(public_tasks[name].id if name in public_tasks else name for name in names)


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
    reasons = (
        asyncio.run(_record_missing(list(public.values()), registry, devices, targets)) if public else {}
    )
    for name, task in public.items():
        tasks[name] = reasons.get(task.id) or load_task(task.id, registry=registry)
    return tasks


def _finder(registry: Path) -> Callable[[str], PublicTask | None]:
    """Return a function that finds the task of a public benchmark by name; `None` for other tasks. Each clone is read once."""
    suites = public_suite_names(registry=registry)
    tasks_of = cache(partial(load_public_suite, registry=registry))

    def find(name: str) -> PublicTask | None:
        suite = name.partition("/")[0]
        return find_public_task(name, tasks_of(suite).tasks) if suite in suites else None

    return find


async def _record_missing(
    tasks: Sequence[PublicTask], registry: Path, devices: Sequence[str], targets: Sequence[str]
) -> dict[str, str]:
    """Record the tasks without a valid recording. Returns the reason for each task that cannot be judged, by its full name."""
    chosen = (await wait_for_devices(devices, on_wait=say))[:1]
    on_gpu = chosen[0].kind != "cpu"
    missing = [task for task in tasks if find_recorded(task, registry, for_gpu=on_gpu) is None]
    reasons: dict[str, str] = {}
    if not missing:
        return reasons
    target = targets_for(chosen, targets)[0]
    pool = DevicePool([device.name for device in chosen], case_bytes=RECORDED_CASE_BYTES, timed=False)

    async def record(public: PublicTask) -> None:
        say(f"{public.id}: records the calls of its test, once")
        try:
            await find_or_record(public, registry, pool=pool, target=target)
        except NotRecorded as reason:
            reasons[public.id] = str(reason)

    async with pool, asyncio.TaskGroup() as group:
        for public in missing:
            group.create_task(record(public), name=f"record/{public.id}")
    return reasons
