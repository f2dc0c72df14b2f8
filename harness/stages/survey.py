"""What compiling and sampling alone tell of many sources of one task: for sweeps. Nothing is judged, nothing runs on a device.

Each source is compiled as the compile stage would, in a sandboxed process of its own, at the `gpu` sizes of the task's open
cases. A source that compiles here may still be wrong; only `evaluate` says.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from harness.hardware.product import Product
from harness.processes.pool import DevicePool
from harness.stages.estimates.roofline import estimate
from harness.stages.estimates.sampling_stage import Sampler, extrapolated
from harness.wire import limits
from harness.wire.channel import BadFrame
from harness.wire.device import Target
from harness.wire.encoding import ENCODER
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.evaluation import Estimate, KernelResources, SampledTraffic
from harness.wire.judge_messages import JUDGE_REPORTS, FirstCallPassed, Specified, Specify
from harness.wire.limits import TimeLimits
from suites.costs import task_cost
from suites.dtypes import NoSuchDtype, task_on
from suites.task import Task

from .compilation import NOTHING, Compiler, TargetReport

VARIANT_LIMITS = TimeLimits(compile_s=30.0, compile_all_s=120.0)
"""A variant that takes longer than this to compile is none that a sweep waits for."""

_MAX_REPORT_BYTES = 64 << 20
Result = TypeVar("Result")


class Compiled(msgspec.Struct, frozen=True):
    """One source, compiled for the target."""

    resources: tuple[KernelResources, ...]
    error: str = ""
    """Why it does not compile or fit, in a few lines; empty when it does."""


class Sampled(msgspec.Struct, frozen=True):
    """What one source asks of memory, at `gpu` sizes, on the target: an estimate. Cases that cannot be sampled are left out."""

    traffic: tuple[SampledTraffic, ...]
    estimate: tuple[Estimate, ...]


class Survey:
    """Compiles and samples sources of one task for one target, as many at once as there are cores."""

    def __init__(self, pool: DevicePool, task: Task, target: Target, product: Product | None = None) -> None:
        self._pool = pool
        self._task = task
        self._target = target
        self._product = product
        """What the devices are, where that is known."""
        try:
            self._here = task_on(task, target.name)
        except NoSuchDtype as lacking:
            raise HarnessError(str(lacking)) from lacking
        self._specified: msgspec.Raw | None = None
        # Candidates that are judged meanwhile wait behind these at most, not behind a whole sweep.
        self._places = asyncio.Semaphore(len(os.sched_getaffinity(0)))

    async def compile(
        self, sources: Sequence[str], on_done: Callable[[], None] = lambda: None
    ) -> tuple[Compiled, ...]:
        """
        Each source compiled, in order; `on_done` is called with each that is.

        `WorkerDied` when a process of ours was lost, `HarnessError` when the task's own code fails.
        """
        cases = await self._specifications()
        passed = FirstCallPassed(cases=cases, ahead=NOTHING)

        async def one(source: str) -> Compiled:
            async with self._places:
                compiler = Compiler(self._pool, self._task, source, VARIANT_LIMITS, side_by_side=False)
                report = await compiler.compile(self._target, passed)
            on_done()
            return _told(report)

        return tuple(await _all([one(source) for source in sources], "compile"))

    async def sample(self, sources: Sequence[str]) -> tuple[Sampled, ...]:
        """The sample of each source, in order; one that cannot be sampled has none."""
        cases = await self._specifications()

        async def one(source: str) -> Sampled:
            async with self._places:
                reports = await Sampler(self._pool, self._here, source, self._target).sample(cases)
            traffic, _ = extrapolated(self._here, self._here.open_cases, self._target, reports)
            return Sampled(traffic, self._estimates(traffic))

        return tuple(await _all([one(source) for source in sources], "sample"))

    def _estimates(self, traffic: Sequence[SampledTraffic]) -> tuple[Estimate, ...]:
        dtypes = {case.name: case.dtype for case in self._here.open_cases}
        bounds = (
            estimate(
                one,
                task_cost(self._here, one.sizes, dtypes[one.case]),
                dtypes[one.case],
                self._target,
                self._product,
            )
            for one in traffic
        )
        return tuple(bound for bound in bounds if bound is not None)

    async def _specifications(self) -> msgspec.Raw:
        if self._specified is None:
            self._specified = await self._specify()
        return self._specified

    async def _specify(self) -> msgspec.Raw:
        """Asked of a judge, who alone runs the task's code."""
        async with self._pool.slot() as free:
            slot = free.interpreter or free
            channel = await slot.channel()
            answered = False
            try:
                async with asyncio.timeout(limits.ORACLE_S):
                    await channel.send(ENCODER.encode(Specify(task=self._here)))
                    report = JUDGE_REPORTS.decode(await channel.receive(_MAX_REPORT_BYTES))
                answered = True
            except (TimeoutError, EOFError, BadFrame, msgspec.DecodeError) as error:
                raise WorkerDied(
                    f"the judge did not tell the arguments of {self._task.id} within {limits.ORACLE_S:g} s"
                ) from error
            finally:
                if not answered:
                    slot.discard()
        if not isinstance(report, Specified):
            raise WorkerDied("the judge answered something else than it was asked")
        if report.problem:
            raise HarnessError(f"{self._task.id}: {report.problem}")
        return report.cases


def _told(report: TargetReport) -> Compiled:
    error = report.error or (f"unsupported: {report.unsupported}" if report.unsupported else "")
    work = report.host_work
    if not error and work is not None:
        error = f"case {work.case}: the work is left to the host at gpu sizes"
    return Compiled(report.resources, error)


async def _all(jobs: Sequence[Coroutine[Any, Any, Result]], name: str) -> list[Result]:
    """The results in order; the first failure ends the others and is raised alone."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job, name=f"{name}/{at}") for at, job in enumerate(jobs)]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
