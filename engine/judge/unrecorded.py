"""Records the tests of public benchmarks while a session runs: a task starts when its test is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from harness import DevicePool, HarnessError, Target
from harness.recording.errors import NotRecorded
from harness.recording.recorder import find_or_record
from harness.wire.errors import NoDeviceLeft
from sessions.events import RECORDING, BaselineStageStarted, TaskLeftOut
from sessions.store.recorder import Recorder
from suites import SuiteError, Task
from suites.public.task import PublicTask


def record_tests(
    unrecorded: Sequence[PublicTask], recorder: Recorder, pool: DevicePool, target: Target, registry: Path
) -> list[Coroutine[Any, Any, Task | None]]:
    """Returns a coroutine for each task, which returns the task once its test is recorded, `None` if it is left out.

    Half of the pool's slots record; the others judge the tasks that are ready.
    """
    places = asyncio.Semaphore(max(1, pool.slots // 2))

    async def record(public: PublicTask) -> Task | None:
        async with places:
            recorder.record(BaselineStageStarted(task=public.id, stage=RECORDING))
            try:
                return await find_or_record(public, registry, pool=pool, target=target)
            except NoDeviceLeft:
                raise
            except (NotRecorded, HarnessError, SuiteError, OSError) as error:
                why = f"its test cannot be recorded: {error}"
                await recorder.record_durable(TaskLeftOut(task=public.id, why=why))
                return None

    return [record(public) for public in unrecorded]
