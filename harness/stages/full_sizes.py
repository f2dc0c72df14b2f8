"""Looks for errors that only `gpu` sizes show: three programs of each launch run there, without touching memory.

A worker runs them; this module, in the parent, checks its reports. A missing report changes no verdict.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence

import msgspec

from harness.processes.conversation import Conversation
from harness.processes.pool import DevicePool
from harness.wire.channels.channel import BadFrame
from harness.wire.device import Target
from harness.wire.errors import WorkerDied
from harness.wire.findings import strict_error
from harness.wire.messages.full_sizes import RanAtFullSizes, RunAtFullSizes
from harness.wire.messages.guest import Broken
from harness.wire.results.evaluation import ErrorReport, Finding, line_in
from suites.costs import task_cost
from suites.task import Case, Task

WALL_S = 60.0
"""For all cases of a candidate; nothing is known of later cases."""
TOUCHED = 0.995
"""Share of the bytes of inputs and outputs that a right kernel touches; cost models round the rest."""


async def run_at_full_sizes(
    pool: DevicePool, task: Task, source: str, target: Target, specifications: msgspec.Raw, seed: int
) -> tuple[RanAtFullSizes, ...]:
    """Return the report on each specified case, in order, or why there is none."""
    names = [case["case"] for case in msgspec.msgpack.decode(specifications)]
    reports: dict[str, RanAtFullSizes] = {}
    why = ""
    request = RunAtFullSizes(source, task.entry_points[0].name, specifications, target.name, seed)
    try:
        async with asyncio.timeout(WALL_S):
            async for report in _receive(pool, task, request, names):
                reports[report.case] = report
    except TimeoutError:
        why = f"not run within {WALL_S:g} s"
    except (EOFError, BadFrame, WorkerDied) as error:
        why = f"its process ended: {error}" if str(error) else "its process ended"
    return tuple(reports.get(name, RanAtFullSizes(name, why)) for name in names)


async def _receive(
    pool: DevicePool, task: Task, request: RunAtFullSizes, names: Sequence[str]
) -> AsyncIterator[RanAtFullSizes]:
    child, channel = await pool.interpreting.spawn(
        "full_sizes", cpu_limit_s=math.ceil(WALL_S), sandboxed=True, package=task.package_view
    )
    try:
        conversation = Conversation(channel)
        await conversation.sandbox()
        await conversation.send(request)
        for name in names:
            match await conversation.answer():
                case RanAtFullSizes(case=case) as report if case == name:
                    yield report
                case Broken():
                    raise EOFError
                case _:
                    raise BadFrame("its answer does not belong to the request")
    finally:
        channel.close()
        child.end()


def find_errors(
    task: Task, cases: Sequence[Case], reports: Sequence[RanAtFullSizes]
) -> tuple[ErrorReport | None, tuple[Finding, ...]]:
    """Return the first store outside its tensor as an error; as findings the loads, and bytes that no program touches."""
    error: ErrorReport | None = None
    findings = []
    by_name = {case.name: case for case in cases}
    for report in reports:
        for access in report.missed_stores[:1] if error is None else ():
            message = f"case {report.case} at its gpu sizes: {access}"
            error = ErrorReport(kind="out_of_bounds", message=message, line=line_in(access))
        for access in report.missed_loads:
            message = f"at its gpu sizes: {access}"
            findings.append(Finding("out_of_bounds", message, report.case, line_in(access)))
        # The cost model counts memory twice that is read and written, and estimates it for a task of calls.
        if report.touched_bytes is None or task.in_place or task.script is not None:
            continue
        case = by_name[report.case]
        needed = task_cost(task, case.gpu, case.dtype).moved_bytes
        if report.touched_bytes < TOUCHED * needed:
            message = (
                f"at its gpu sizes kernels touch at most {report.touched_bytes:,} distinct bytes, "
                f"inputs and outputs hold {needed:,}"
            )
            findings.append(Finding("gpu_sizes", message, report.case))
    return error or strict_error(findings, task.strict), tuple(findings)
