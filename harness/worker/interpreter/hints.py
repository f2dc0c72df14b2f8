"""Reports hints that do not hold. A compiler makes wide accesses of a `tl.multiple_of`, which the interpreter ignores. It may
drop code by a `tl.assume`, at which the interpreter stops; authors write false ones (`tl.assume(pid > 0)`) that drop nothing.

`tl.max_contiguous` and `tl.max_constancy` are not checked: authors also write them for indices that wrap around (`rows % m`),
and no store ever writes the wrong lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from harness.worker.interpreter.tapes.tracing import operation

from .observing import current

ALIGNMENT = 16
"""Bytes. Whether an address is a multiple of more depends on the allocator, not on the kernel."""


def install() -> None:
    """Once a process: a false `tl.assume` is noted, and the kernel goes on."""
    interpreter.InterpreterBuilder.create_assume = _assume


def _assume(_: Any, condition: Any) -> None:
    observation = current()
    if observation is not None and not np.all(condition.data):
        observation.note_false_promise("`tl.assume` names a condition that does not hold")


def patch(scope: Any) -> None:
    """Replace the hint by a check until the scope is restored."""
    for owner in (tl, tl.core):
        scope.set_attr(owner, "multiple_of", operation("multiple_of", _multiple_of, changes=True))


def _multiple_of(input: Any, values: Any) -> Any:
    if isinstance(input, tl.tensor):
        listed = values if isinstance(values, (list, tuple, tl.tuple)) else [values]
        numbers = [int(value.value if isinstance(value, tl.constexpr) else value) for value in listed]
        if len(numbers) != max(1, len(input.shape)):
            raise ValueError(f"tl.multiple_of takes a value for each dimension, {len(input.shape)} here")
        _check_divisors(input, numbers)
    return input


def _check_divisors(input: Any, numbers: Sequence[int]) -> None:
    """Note values that are no multiples of the promised number, or of its power of two, as a compiler uses only that.

    A compiler applies the promise only to the first of neighbouring lanes.
    """
    data = input.handle.data
    if data.dtype.kind not in "iu":
        return
    pointers = isinstance(input.dtype, tl.pointer_type)
    step = max(int(input.dtype.element_ty.primitive_bitwidth) // 8, 1) if pointers else 1
    for axis, number in enumerate(numbers):
        divisor = number & -number
        if pointers:
            divisor = min(divisor, ALIGNMENT)
        if divisor <= 1:
            continue
        first = data
        if input.shape:
            lanes = np.moveaxis(data, axis, 0)
            # Any neighbours count: indices that wrap around may do so after the first lane.
            neighbours = bool((np.diff(lanes.astype(np.int64), axis=0) == step).any())
            if not neighbours and (pointers or data.ndim > 1) and len(lanes) > 1:
                continue  # the promise does not say how wide this axis is read
            first = lanes[:1] if neighbours else lanes
        wrong = first[(first & (divisor - 1)) != 0]
        if wrong.size:
            observation = current()
            if observation is not None:
                value = "an address is not" if pointers else f"{int(wrong.ravel()[0])} is not"
                observation.note_false_promise(
                    f"`tl.multiple_of` promises multiples of {number}, and {value}"
                )
            return
