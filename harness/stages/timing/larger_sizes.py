"""The same case at several times its size: what a time that beats the hardware is held against before it is believed."""

from __future__ import annotations

import msgspec

from harness.wire.evaluation import ErrorReport, Verdict
from suites.costs import task_cost
from suites.dtypes import item_bytes
from suites.task import Case, Task

from .conclusions import Timing

TIMES = 4
"""A fixed cost or a cache that hid part of the work at one size does not at four times that."""
LEAST_GROWTH = 2.0
"""An axis counts as the leading one where the work grows at least so much with it."""
MOST_ELEMENTS = (1 << 31) - 1
"""Of all inputs and outputs together: an honest kernel may count elements in 32 bits."""
BEYOND_HARDWARE = "beyond_hardware"
"""Kind of the error of what is still too fast."""


class Larger(msgspec.Struct, frozen=True):
    """A case with its leading size multiplied."""

    of: str
    case: Case
    words: str
    """`rows 32768 instead of 8192`."""


def larger(task: Task, case: Case) -> Larger | str:
    """The case with its leading size times `TIMES`, under a name of its own; in words, why there is none.

    The leading size is the first in the case's order that a kernel must take other values of (`axes` of the task) and
    that the work grows with. `BadTask` where the task's cost model does not answer.
    """
    before = task_cost(task, case.gpu, case.dtype)
    why = "its task has no axis along which a kernel must take other sizes"
    for axis, size in case.gpu.items():
        if axis not in task.axes or not task.axes[axis].vary:
            continue
        sizes = case.gpu | {axis: TIMES * size}
        after = task_cost(task, sizes, case.dtype)
        if after.minimal_bytes > MOST_ELEMENTS * item_bytes(case.dtype):
            why = f"{axis} {TIMES * size} is more than kernels may count in 32 bits"
            continue
        if max(after.minimal_bytes, 1) < LEAST_GROWTH * before.minimal_bytes:
            why = f"its work hardly grows with {axis}"
            continue
        again = msgspec.structs.replace(case, name=f"{case.name}-x{TIMES}", cpu=sizes, gpu=sizes)
        return Larger(case.name, again, f"{axis} {TIMES * size} instead of {size}")
    return why


def doubted(first: Timing, again: Timing, asked: tuple[Larger, ...], why_not: dict[str, str]) -> Timing:
    """
    The first timing with what came of its suspects: refused where one is too fast at several times the size as well.

    `why_not` says by case why it could not be made larger. A suspect that could not be measured again stays one.
    """
    if again.verdict is not Verdict.CORRECT:
        assert again.error is not None
        sizes = "; ".join(f"{one.of} at {one.words}" for one in asked)
        message = f"measured again at several times the size ({sizes}): {again.error.message}"
        error = msgspec.structs.replace(again.error, message=message)
        return msgspec.structs.replace(first, latency=(), detail=message, verdict=again.verdict, error=error)
    notes = [
        *first.notes,
        *(f"{case}: not measured at a larger size: {why}" for case, why in why_not.items()),
    ]
    told = {one.case: one for one in again.latency}
    for one in asked:
        found = told.get(one.case.name)
        if found is None or found.efficiency is None:
            notes.append(f"{one.of}: not measured at a larger size ({one.words}): {again.detail}")
            continue
        if found.efficiency.suspect:
            message = (
                f"{one.of} is too fast for the hardware, and at {one.words} still: {found.efficiency.suspect}; "
                "a kernel that does all of the work on every call cannot be"
            )
            error = ErrorReport(kind=BEYOND_HARDWARE, message=message)
            return msgspec.structs.replace(
                first, latency=(), detail=message, verdict=Verdict.REJECTED, error=error, notes=tuple(notes)
            )
        notes.append(
            f"{one.of}: measured again at {one.words}, {found.candidate_ms:.4g} ms is within what the hardware can do"
        )
    return msgspec.structs.replace(first, notes=tuple(notes))
