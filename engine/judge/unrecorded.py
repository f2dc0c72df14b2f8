"""Records the tests of public benchmarks while a session runs: a task starts when its test is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from engine.errors import BudgetSpent
from engine.plan.budget import Budget
from harness import DevicePool, HarnessError, Target
from harness.recording.recorder import find_or_record
from harness.wire.errors import NoDeviceLeft, NotRecorded
from sessions.events import RECORDING, BaselineStageStarted, TaskLeftOut
from sessions.store.recorder import Recorder
from suites import SuiteError, Task
from suites.public.task import PublicTask


def record_tests(
    unrecorded: Sequence[PublicTask],
    *,
    recorder: Recorder,
    budget: Budget,
    pool: DevicePool,
    target: Target,
    registry: Path,
) -> list[Coroutine[Any, Any, Task | None]]:
    """Returns a coroutine for each task, which returns the task once its test is recorded, `None` if it is left out.

    As many tests as the pool has slots are recorded at once. Candidates and tests wait for a slot in one queue.
    """
    places = asyncio.Semaphore(pool.slots)

    async def record(public: PublicTask) -> Task | None:
        try:
            if public.unsupported:
                raise NotRecorded(public.unsupported)
            async with budget.wall_time(), places:
                recorder.record(BaselineStageStarted(task=public.id, stage=RECORDING))
                return await find_or_record(public, registry, pool=pool, target=target)
        except NoDeviceLeft:
            raise
        except (NotRecorded, HarnessError, SuiteError, OSError, BudgetSpent) as error:
            await recorder.record_durable(TaskLeftOut(task=public.id, why=str(error)))
            return None

    return [record(public) for public in unrecorded]
