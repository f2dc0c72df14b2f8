"""Finds errors that only `gpu` sizes show, in three programs of each launch, and computes the memory traffic that a case needs.

A worker runs the programs, without touching memory; this module, in the parent, checks its reports. A missing report changes no
verdict. The need follows from the task's cost model and the vendor's peaks.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence

import msgspec

from harness.hardware.product import Product, matrix_peak, vector_peak
from harness.hardware.targets import hardware
from harness.processes.conversation import Conversation
from harness.processes.pool import DevicePool
from harness.wire.calls.tensors import CASE_SPECS
from harness.wire.channels.channel import BadFrame
from harness.wire.device import Target
from harness.wire.errors import WorkerDied
from harness.wire.findings import strict_error
from harness.wire.messages.compiler import RanAtFullSizes, RunAtFullSizes
from harness.wire.messages.guest import Broken
from harness.wire.results.evaluation import ErrorReport, Finding, FullSize, Traffic, line_in
from suites.costs import task_cost
from suites.task import Case, Cost, Task

WALL_S = 60.0
"""For all cases of a candidate; nothing is known of later cases."""
TOUCHED = 0.995
"""Share of the bytes of inputs and outputs that a right kernel touches; cost models round the rest."""
LAUNCH_S = 1e-6
"""A case for which memory needs less time only measures its launch."""


async def run_at_full_sizes(
    pool: DevicePool, task: Task, source: str, target: Target, specifications: msgspec.Raw, seed: int
) -> tuple[RanAtFullSizes, ...]:
    """Return the report on each specified case, in order, or why there is none."""
    names = list(CASE_SPECS.decode(specifications))
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
    """Yield a worker's report on each case, in the order of `names`. The worker is ended with the iteration.

    Raises `EOFError` if the worker ends or fails, `BadFrame` if it sends anything else.
    """
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


def needed_bytes(cost: Cost, dtype: str, target: Target, product: Product | None = None) -> int:
    """
    Return the bytes that every kernel moves, or those that memory moves while the FLOPs run, if more; 0 if unknown.

    Both rates are the peaks of `product` if it has this target, else of the target's reference device. `dtype` is the case's.
    Every FLOP counts at the dtype's fastest unit; FLOPs without a known peak do not count.
    """
    facts = hardware(target, product)
    matrix = matrix_peak(facts.matrix_flops, cost.dot_dtype or dtype)
    peaks = [peak for peak in (matrix, vector_peak(facts.vector_flops, dtype)) if peak]
    if not cost.moved_bytes or not peaks or (cost.dot_dtype is not None and matrix is None):
        return cost.moved_bytes
    return max(cost.moved_bytes, round(cost.flops * facts.memory_bytes_per_s / max(peaks)))


def full_size(task: Task, case: Case, target: Target, product: Product | None = None) -> FullSize:
    """Return the sizes of a case on a GPU, and its need. Raises `BadTask` if the task's `cost.py` fails."""
    needed = needed_bytes(task_cost(task, case.gpu, case.dtype), case.dtype, target, product)
    is_long = needed >= LAUNCH_S * hardware(target, product).memory_bytes_per_s
    return FullSize(case.name, case.gpu, needed, is_long)


def add_needs(
    task: Task, cases: Sequence[Case], counts: Sequence[Traffic], target: Target, product: Product | None
) -> tuple[tuple[Traffic, ...], tuple[FullSize, ...]]:
    """Return the bytes and operations that cases need: beside the interpreter's counts at `cpu` sizes, and at `gpu` sizes.

    `counts` has a row for each case that the interpreter ran, and stays unchanged.
    """
    by_name = {case.name: case for case in cases}
    traffic = []
    for row in counts:
        case = by_name[row.case]
        cost = task_cost(task, case.cpu, case.dtype)
        traffic.append(
            msgspec.structs.replace(
                row,
                sizes=case.cpu,
                minimal_bytes=cost.moved_bytes,
                flops=cost.flops,
                needed_bytes=needed_bytes(cost, case.dtype, target, product),
            )
        )
    return tuple(traffic), tuple(full_size(task, by_name[row.case], target, product) for row in counts)
