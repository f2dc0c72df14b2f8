"""Pool of judges for a whole test session, and short calls that judge one source."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping

import msgspec
import pytest_asyncio

from harness import DevicePool, Evaluation, StageEvent, TimeLimits, evaluate, target
from harness.stages.modes import Attempt, Cases, Exam
from suites import Task, load_task

from .nurseries import one_nursery


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def pool() -> AsyncIterator[DevicePool]:
    async with contextlib.AsyncExitStack() as stack:
        with one_nursery():
            # On a busy machine too, the judge has time for all cases after the first wrong one.
            pool = DevicePool(slots=2, limits=TimeLimits(rest_s=30.0))
            started = await stack.enter_async_context(pool)
        yield started


async def judge_task(
    pool: DevicePool,
    source: str,
    task: Task,
    *,
    targets: tuple[str, ...] = ("gfx942",),
    seed: int = 1,
    exam: bool = False,
) -> Evaluation:
    return await evaluate(
        source,
        task,
        pool,
        Exam() if exam else Attempt(),
        targets=[target(name) for name in targets],
        seed=seed,
    )


async def judge(
    pool: DevicePool,
    source: str,
    task: str = "vector_add",
    *,
    seed: int = 1,
    targets: tuple[str, ...] = ("gfx942",),
    hidden: bool = False,
    cases: int | tuple[str, ...] | None = None,
    on_event: Callable[[StageEvent], None] | None = None,
    keep_texts: Callable[[Mapping[str, bytes]], None] | None = None,
) -> Evaluation:
    """`cases`: judge only so many of the task's cases, from the first, or those of these names."""
    whole = load_task(task)
    chosen = (
        tuple(case for case in whole.cases if case.name in cases)
        if isinstance(cases, tuple)
        else whole.cases[:cases]
    )
    judged = msgspec.structs.replace(whole, cases=chosen)
    return await evaluate(
        source,
        judged,
        pool,
        Attempt() if hidden else Cases(tuple(case.name for case in judged.open_cases)),
        targets=[target(name) for name in targets],
        seed=seed,
        on_event=on_event,
        keep_texts=keep_texts,
    )
