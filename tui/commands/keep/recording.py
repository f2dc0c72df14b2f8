"""Gives tasks of public benchmarks to commands that judge: the calls of a test are recorded once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

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
    """Record the named tasks of public benchmarks that have no valid recording.

    Returns the names of the tasks that can be judged as `load_task` knows them: a benchmark's own name of a task may differ. A
    task that cannot be judged is left out with a warning. Raises `SuiteError` for an unknown task, and `Complaint` if no named
    task can be judged.
    """
    return record_first(names, registry, devices=devices, targets=targets, fewest=len(names)).ready


class Recorded(NamedTuple):
    """Full names of the tasks of a run."""

    ready: tuple[str, ...]
    unrecorded: tuple[str, ...]


def record_first(
    names: Sequence[str], registry: Path, *, devices: Sequence[str], targets: Sequence[str], fewest: int = 1
) -> Recorded:
    """Like `record_missing`, but returns when `fewest` of the named tasks are ready."""
    find = _finder(registry)
    public = {name: task for name in names if (task := find(name)) is not None}
    reasons: dict[str, str] = {}
    waiting: list[str] = []
    if public:
        fewest -= len(names) - len(public)
        reasons, waiting = asyncio.run(
            _record_missing(list(public.values()), registry, devices, targets, fewest)
        )
    full_names = [public[name].id if name in public else name for name in names]
    if reasons and len(reasons) == len(set(full_names)):
        raise Complaint("; ".join(f"{name} cannot be judged: {why}" for name, why in reasons.items()))
    for name, why in reasons.items():
        say(f"{name} is left out: it cannot be judged: {why}")
    return Recorded(
        tuple(name for name in full_names if name not in reasons and name not in waiting), tuple(waiting)
    )


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
    reasons: dict[str, str] = {}
    if public:
        reasons, _ = asyncio.run(
            _record_missing(list(public.values()), registry, devices, targets, len(public))
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
    tasks: Sequence[PublicTask], registry: Path, devices: Sequence[str], targets: Sequence[str], fewest: int
) -> tuple[dict[str, str], list[str]]:
    """Record the tasks without a valid recording, side by side, until `fewest` tasks are ready.

    Returns the reason for each task that cannot be judged, and the tasks that were not recorded yet, by full name.
    """
    chosen = (await wait_for_devices(devices, on_wait=say))[:1]
    on_gpu = chosen[0].kind != "cpu"
    missing = {task.id: task for task in tasks if find_recorded(task, registry, for_gpu=on_gpu) is None}
    ready = len({task.id for task in tasks}) - len(missing)
    reasons = {name: task.unsupported for name, task in missing.items() if task.unsupported}
    missing = {name: task for name, task in missing.items() if name not in reasons}
    if not missing or ready >= fewest:
        return reasons, list(missing)
    tests = (
        f"the test of {next(iter(missing))}" if len(missing) == 1 else f"the tests of {len(missing)} tasks"
    )
    then = "; the session starts with the first" if ready + len(missing) > fewest else ""
    say(f"records the calls of {tests}, once{then}")
    target = targets_for(chosen, targets)[0]
    pool = DevicePool([device.name for device in chosen], case_bytes=RECORDED_CASE_BYTES, timed=False)

    async def record(public: PublicTask) -> str:
        """Returns why the task cannot be judged; empty if it can."""
        try:
            await find_or_record(public, registry, pool=pool, target=target)
        except NotRecorded as reason:
            return str(reason)
        return ""

    async with pool:
        recordings = {asyncio.create_task(record(task), name=name): name for name, task in missing.items()}
        try:
            while recordings and ready < fewest:
                ended, _ = await asyncio.wait(recordings, return_when=asyncio.FIRST_COMPLETED)
                for recording in ended:
                    name = recordings.pop(recording)
                    if reason := await recording:
                        reasons[name] = reason
                    else:
                        ready += 1
        finally:
            for recording in recordings:
                recording.cancel()
            if recordings:
                await asyncio.wait(recordings)
    return reasons, list(recordings.values())
