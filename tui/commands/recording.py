"""Tasks of public benchmarks for commands that judge: the calls of their tests are recorded once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from harness import DevicePool
from harness.node.selection import targets_for, wait_for_devices
from harness.stages.recording import NotRecorded, record_task
from suites import Task, load_public_task, load_task, public_suite_names
from suites.public.recorded import find_recorded, recorded_folder
from suites.public.task import PublicTask
from tui.diagnostics import Complaint, say


def judged_task(name: str, registry: Path, *, devices: Sequence[str], targets: Sequence[str]) -> Task:
    """Return a task by name; a task of a public benchmark is recorded first if it was not.

    Raises `SuiteError` for an unknown task, `Complaint` with the reason if no call of its test can be judged.
    """
    suite = name.partition("/")[0]
    if suite not in public_suite_names(registry=registry):
        return load_task(name, registry=registry)
    public = load_public_task(name, registry=registry)
    recorded = find_recorded(public, registry)
    if recorded is not None:
        return recorded
    say(f"{public.id}: records the calls of its test, once")
    try:
        return asyncio.run(_record(public, registry, devices, targets))
    except NotRecorded as reason:
        raise Complaint(f"{public.id} cannot be judged: {reason}") from reason


async def _record(public: PublicTask, registry: Path, devices: Sequence[str], targets: Sequence[str]) -> Task:
    chosen = (await wait_for_devices(devices, on_wait=say))[:1]
    async with DevicePool([device.name for device in chosen], slots=1) as pool:
        folder = recorded_folder(registry, public.suite) / public.name
        return await record_task(public, folder, pool=pool, target=targets_for(chosen, targets)[0])
