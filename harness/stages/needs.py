"""The memory traffic that a case needs, by the cost model and the vendor's peaks, beside what the kernels requested."""

from __future__ import annotations

from collections.abc import Sequence

from harness.hardware.product import Product, matrix_peak, vector_peak
from harness.hardware.targets import hardware
from harness.wire.device import Target
from harness.wire.messages.guest import CaseTraffic
from harness.wire.results.evaluation import Counts, FullSize, Traffic
from suites.costs import task_cost
from suites.task import Case, Cost, Task

LAUNCH_S = 1e-6
"""A case for which memory needs less time only measures its launch."""


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
    task: Task, cases: Sequence[Case], counts: Sequence[CaseTraffic], target: Target, product: Product | None
) -> tuple[tuple[Traffic, ...], tuple[FullSize, ...]]:
    """Return the interpreter's counts with the need of each case at its `cpu` sizes, and the same cases at `gpu` sizes."""
    by_name = {case.name: case for case in cases}
    traffic = []
    for row in counts:
        case = by_name[row.case]
        cost = task_cost(task, case.cpu, case.dtype)
        traffic.append(
            Traffic(
                sizes=case.cpu,
                minimal_bytes=cost.moved_bytes,
                flops=cost.flops,
                needed_bytes=needed_bytes(cost, case.dtype, target, product),
                **{name: getattr(row, name) for name in Counts.__struct_fields__},
            )
        )
    return tuple(traffic), tuple(full_size(task, by_name[row.case], target, product) for row in counts)
