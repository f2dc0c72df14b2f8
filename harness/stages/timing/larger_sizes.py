"""Times a case again at several times its size if its first time beats the hardware."""

from __future__ import annotations

import math

import msgspec

from harness.wire.results.evaluation import ErrorReport
from suites.costs import task_cost
from suites.dtypes import item_bytes
from suites.task import Axis, Case, Task

from .conclusions import Timing

TIMES = 4
"""A fixed cost or a cache that hid part of the work at one size does not hide it at four times that size."""
LEAST_GROWTH = 2.0
"""The work must grow at least this much with the leading axis."""
MOST_ELEMENTS = (1 << 31) - 1
"""Limit for all inputs and outputs together: an honest kernel may count elements in 32 bits."""
BEYOND_HARDWARE = "beyond_hardware"
"""Kind of the error if the larger case is still too fast."""


class Larger(msgspec.Struct, frozen=True):
    """A case with its leading size multiplied."""

    of: str
    case: Case
    words: str
    """`rows 32768 instead of 8192`."""


def enlarge_case(task: Task, case: Case) -> Larger | str:
    """The case with its leading size times `TIMES`, under its own name; or in words why there is none.

    The leading size is the first size in the case's order that may vary (`axes` of the task) and that the work grows with.
    `BadTask` if the task's cost model fails.
    """
    before = task_cost(task, case.gpu, case.dtype)
    why = "its task has no axis along which a kernel must take other sizes"
    for axis, size in case.gpu.items():
        allowed = task.axes.get(axis, Axis(vary=False))
        if not allowed.vary or TIMES * size > (allowed.max or math.inf):
            continue
        sizes = case.gpu | {axis: TIMES * size}
        after = task_cost(task, sizes, case.dtype)
        if after.minimal_bytes > MOST_ELEMENTS * item_bytes(case.dtype):
            why = f"{axis} {TIMES * size} is more than kernels may count in 32 bits"
        elif max(after.minimal_bytes, 1) < LEAST_GROWTH * before.minimal_bytes:
            why = f"its work hardly grows with {axis}"
        else:
            larger = msgspec.structs.replace(case, name=f"{case.name}-x{TIMES}", cpu=sizes, gpu=sizes)
            return Larger(case.name, larger, f"{axis} {TIMES * size} instead of {size}")
    return why


def judge_suspects(
    first: Timing, again: Timing, larger: tuple[Larger, ...], why_not: dict[str, str]
) -> Timing:
    """The first timing, with an error if one of its suspects is still too fast at larger sizes.

    `why_not` says by case why it could not be enlarged. A suspect that could not be timed again stays a suspect.
    """
    if again.error is not None:
        sizes = "; ".join(f"{case.of} at {case.words}" for case in larger)
        message = f"measured again at several times the size ({sizes}): {again.error.first_line}"
        return first.refused(msgspec.structs.replace(again.error, message=message))
    notes = [
        *first.notes,
        *(f"{case}: not measured at a larger size: {why}" for case, why in why_not.items()),
    ]
    latencies = {latency.case: latency for latency in again.latency}
    for case in larger:
        latency = latencies.get(case.case.name)
        if latency is None or latency.efficiency is None:
            notes.append(f"{case.of}: not measured at a larger size ({case.words}): {again.detail}")
            continue
        if latency.efficiency.suspect:
            message = (
                f"{case.of} is too fast for the hardware, and at {case.words} still: {latency.efficiency.suspect}; "
                "a kernel that does all of the work on every call cannot be"
            )
            refused = first.refused(ErrorReport(kind=BEYOND_HARDWARE, message=message))
            return msgspec.structs.replace(refused, notes=tuple(notes))
        notes.append(
            f"{case.of}: measured again at {case.words}, {latency.candidate_ms:.4g} ms is within what the hardware can do"
        )
    return msgspec.structs.replace(first, notes=tuple(notes))
