"""Helpers of tests on a real GPU (`pytest -m gpu`); `WAVEDECK_TEST_DEVICE` names the device (default `0`)."""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from harness import DevicePool, Evaluation, TimeLimits, discover_devices, evaluate, target
from suites import Task, load_task

DEVICE = os.environ.get("WAVEDECK_TEST_DEVICE", "0")
"""Read at collection: later each test gets an empty environment."""
SLOTS = 6
"""More parallel judgings than in production: the cases of these tests are small."""


@functools.cache
def missing() -> str:
    """Return why no GPU test can run here; empty if GPU tests can run."""
    gpus = [device for device in discover_devices() if device.kind != "cpu" and device.visibility]
    if not gpus:
        return "this machine shows no GPU whose runtime answers"
    names = [device.name for device in gpus]
    return "" if DEVICE in names else f"WAVEDECK_TEST_DEVICE={DEVICE} is none of the GPUs {', '.join(names)}"


needs_gpu = pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gpu_pool() -> AsyncIterator[DevicePool]:
    limits = TimeLimits(call_s=60.0, call_cpu_s=60.0, case_s=60.0, case_cpu_s=60.0)
    async with DevicePool((DEVICE,), slots=SLOTS, limits=limits) as started:
        yield started


def small(task: Task) -> Task:
    """Return the task with its small `cpu` sizes also on GPUs; the tests do not depend on the amount of work."""
    cases = tuple(msgspec.structs.replace(case, gpu=case.cpu) for case in task.cases)
    return msgspec.structs.replace(task, cases=cases)


async def judge_small(pool: DevicePool, source: str) -> Evaluation:
    own = target(pool.devices[0].target or "")
    return await evaluate(source, small(load_task("vector_add")), pool, targets=[own], seed=1)
