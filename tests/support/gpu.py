"""Tests on a real GPU: `pytest -m gpu`, on the device that `WAVEDECK_TEST_DEVICE` names (`0` without it)."""

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
"""Read when tests are collected, before each test's environment is emptied."""
SLOTS = 6
"""Small cases leave room for more than are judged at once at a GPU's own sizes."""


@functools.cache
def missing() -> str:
    """Why nothing can be tested on a GPU here; empty when it can."""
    found = [device for device in discover_devices() if device.kind != "cpu" and device.visibility]
    if not found:
        return "this machine shows no GPU whose runtime answers"
    names = [device.name for device in found]
    return "" if DEVICE in names else f"WAVEDECK_TEST_DEVICE={DEVICE} is none of the GPUs {', '.join(names)}"


needs_gpu = pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gpu_pool() -> AsyncIterator[DevicePool]:
    limits = TimeLimits(call_s=60.0, call_cpu_s=60.0, case_s=60.0, case_cpu_s=60.0)
    async with DevicePool((DEVICE,), slots=SLOTS, limits=limits) as started:
        yield started


def small(task: Task) -> Task:
    """The task with the sizes of `cpu` on a GPU too: what is tested by it does not hang on how much there is to do."""
    cases = tuple(msgspec.structs.replace(case, gpu=case.cpu) for case in task.cases)
    return msgspec.structs.replace(task, cases=cases)


async def judge_small(pool: DevicePool, source: str, task: str = "vector_add") -> Evaluation:
    own = target(pool.devices[0].target or "")
    return await evaluate(source, small(load_task(task)), pool=pool, targets=[own], seed=1)
