"""Gives tasks of public benchmarks to commands that judge: the calls of a test are recorded once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from harness import DevicePool
from harness.node.selection import targets_for, wait_for_devices
from harness.processes.capacity import RECORDED_CASE_BYTES
from harness.recording.errors import NotRecorded
from harness.recording.recorder import find_or_record
from suites import Task, find_public_task, load_public_suite, load_task, public_suite_names
from suites.public.recorded import find_recorded
from suites.public.task import PublicTask
from tui.diagnostics import Complaint, say


def judged_task(name: str, registry: Path, *, devices: Sequence[str], targets: Sequence[str]) -> Task:
    """Return a task by name. A task of a public benchmark is recorded first, if it has no valid recording.

    Raises `SuiteError` for an unknown task. Raises an `ExceptionGroup` of a `Complaint` for each task of which no call
    can be judged.
    """
    (full_name,) = record_missing([name], registry, devices=devices, targets=targets)
    return load_task(full_name, registry=registry)


def record_missing(
    names: Sequence[str], registry: Path, *, devices: Sequence[str], targets: Sequence[str]
) -> tuple[str, ...]:
    """Record the named tasks of public benchmarks that have no valid recording. Raises as `judged_task`.

    Returns all names as `load_task` knows them: a benchmark's own name of a task may differ.
    """
    suites = {name.partition("/")[0] for name in names} & set(public_suite_names(registry=registry))
    tasks_by_suite = {suite: load_public_suite(suite, registry=registry).tasks for suite in suites}
    public_tasks = {
        name: find_public_task(name, tasks_by_suite[suite])
        for name in names
        if (suite := name.partition("/")[0]) in suites
    }
    if public_tasks:
        asyncio.run(_record_missing(list(public_tasks.values()), registry, devices, targets))
    return tuple(public_tasks[name].id if name in public_tasks else name for name in names)


async def _record_missing(
    tasks: Sequence[PublicTask], registry: Path, devices: Sequence[str], targets: Sequence[str]
) -> None:
    chosen = (await wait_for_devices(devices, on_wait=say))[:1]
    on_gpu = chosen[0].kind != "cpu"
    missing = [task for task in tasks if find_recorded(task, registry, for_gpu=on_gpu) is None]
    if not missing:
        return
    target = targets_for(chosen, targets)[0]
    pool = DevicePool([device.name for device in chosen], case_bytes=RECORDED_CASE_BYTES, timed=False)

    async def record(public: PublicTask) -> None:
        say(f"{public.id}: records the calls of its test, once")
        try:
            await find_or_record(public, registry, pool=pool, target=target)
        except NotRecorded as reason:
            raise Complaint(f"{public.id} cannot be judged: {reason}") from reason

    async with pool, asyncio.TaskGroup() as group:
        for public in missing:
            group.create_task(record(public), name=f"record/{public.id}")
