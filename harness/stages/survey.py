"""Compile many sources of one task, for sweeps. Nothing is judged, nothing runs on a device.

Each source is compiled as in the compile stage, in a sandboxed process, at the `gpu` sizes of the task's open cases. A
source that compiles here may still be wrong; only `evaluate` finds out.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from harness.processes.pool import DevicePool
from harness.wire.device import Target
from harness.wire.errors import HarnessError
from harness.wire.limits import TimeLimits
from harness.wire.messages.judge import Specified
from harness.wire.results.evaluation import KernelResources
from suites.dtypes import NoSuchDtype
from suites.task import Task

from .compilation import Compiler, TargetReport, run_all
from .judged_task import resolve_task, specify_cases, with_calls
from .retries import UNEXPLAINED

VARIANT_LIMITS = TimeLimits(compile_s=30.0, compile_all_s=120.0)
"""A sweep does not wait longer for a variant."""


class Compiled(msgspec.Struct, frozen=True):
    """One source, compiled for the target."""

    resources: tuple[KernelResources, ...]
    error: str = ""
    """Why it does not compile or fit, in a few lines; empty when it does."""


class Surveying(Protocol):
    """Compiles sources of one task: a `Survey` on this machine, or the judges of a cluster."""

    async def compile(self, sources: Sequence[str]) -> tuple[Compiled, ...]:
        """Compile each source; results in order."""


class Survey:
    """Compiles sources of one task for one target, as many at once as there are cores."""

    def __init__(self, pool: DevicePool, task: Task, target: Target) -> None:
        self._pool = pool
        self._task = task
        self._target = target
        try:
            self._here = resolve_task(task, target.name, on_gpu=False)
        except NoSuchDtype as lacking:
            raise HarnessError(str(lacking)) from lacking
        self._specified: Specified | None = None
        # Candidates that are judged at the same time wait behind these sources at most, not behind a whole sweep.
        self._places = asyncio.Semaphore(len(os.sched_getaffinity(0)))

    async def compile(
        self, sources: Sequence[str], on_done: Callable[[], None] = lambda: None
    ) -> tuple[Compiled, ...]:
        """Compile each source; results in order, `on_done` is called after each.

        `WorkerDied` if a process of ours is lost, `HarnessError` if the task's own code fails.
        """
        specified = await self._specifications()

        async def compile_source(source: str) -> Compiled:
            """Compile one source when a core is free, again if its error is in doubt."""
            compiler = Compiler(
                self._pool,
                self._task,
                with_calls(self._task, source),
                VARIANT_LIMITS,
            )
            async with self._places:
                report = await compiler.compile(self._target, specified)
                for _ in range(UNEXPLAINED.times if report.doubt else 0):
                    report = await compiler.compile(self._target, specified)
            on_done()
            return _to_compiled(report)

        return tuple(await run_all([compile_source(source) for source in sources], "compile"))

    async def _specifications(self) -> Specified:
        """Arguments of the task's open cases."""
        if self._specified is None:
            self._specified = await specify_cases(self._pool, self._here, self._target.name)
        return self._specified


def _to_compiled(report: TargetReport) -> Compiled:
    """Return the compiler's report on one source as the survey's result: its kernels, or the error that rules it out."""
    error = report.error or (f"unsupported: {report.unsupported}" if report.unsupported else "")
    work = report.host_work
    if not error and work is not None:
        error = f"case {work.case}: the work is left to the host at gpu sizes"
    return Compiled(report.resources, error)
