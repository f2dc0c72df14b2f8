"""
What kernels tell a compiler of their values: a false `tl.multiple_of` is reported.

The interpreter ignores these hints; a compiler makes wide accesses of them. `tl.max_contiguous` and `tl.max_constancy` are not checked:
authors write them of indices that wrap around (`rows % m`), whose wrong lanes no store lets out.
Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray

from .observing import current
from .tracing import operation

ALIGNMENT = 16
"""Bytes. What may be promised of an address beyond them depends on who allocates, not on the kernel."""

Values = NDArray[Any]


def patch(scope: Any) -> None:
    """Puts the checking function where kernels find it, until the scope is restored."""
    for owner in (tl, tl.core):
        scope.set_attr(owner, "multiple_of", operation("multiple_of", _multiple_of, changes=True))


def _multiple_of(input: Any, values: Any) -> Any:
    if isinstance(input, tl.tensor):
        listed = values if isinstance(values, (list, tuple, tl.tuple)) else [values]
        given = [int(one.value) if isinstance(one, tl.constexpr) else int(one) for one in listed]
        if len(given) != max(1, len(input.shape)):
            raise ValueError(f"tl.multiple_of takes a value for each dimension, {len(input.shape)} here")
        _check_divisors(input, given)
    return input


def _check_divisors(input: Any, given: Sequence[int]) -> None:
    """Notes where values are no multiples of the promised number, as far as a compiler makes use of it: of its power of two.

    Of lanes that are neighbours a compiler takes it for the first alone.
    """
    data = input.handle.data
    if data.dtype.kind not in "iu":
        return
    step = _step(input)
    pointers = isinstance(input.dtype, tl.pointer_type)
    for axis, number in enumerate(given):
        divisor = number & -number
        if pointers:
            divisor = min(divisor, ALIGNMENT)
        if divisor <= 1:
            continue
        first = data
        if input.shape:
            lanes = np.moveaxis(data, axis, 0)
            neighbours = _are_neighbours(lanes, step)
            if not neighbours and (pointers or data.ndim > 1) and len(lanes) > 1:
                continue  # it says nothing of how wide this axis is read
            first = lanes[:1] if neighbours else lanes
        wrong = first[(first & (divisor - 1)) != 0]
        if wrong.size:
            what = "an address is not" if pointers else f"{int(wrong.ravel()[0])} is not"
            _note_false_promise(f"`tl.multiple_of` promises multiples of {number}, and {what}")
            return


def _are_neighbours(lanes: Values, step: int) -> bool:
    """Whether any are: indices that wrap around may do so after the first."""
    return bool((np.diff(lanes.astype(np.int64), axis=0) == step).any())


def _step(input: Any) -> int:
    """From one neighbour to the next."""
    if isinstance(input.dtype, tl.pointer_type):
        return max(int(input.dtype.element_ty.primitive_bitwidth) // 8, 1)
    return 1


def _note_false_promise(what: str) -> None:
    observation = current()
    if observation is not None:
        observation.note_false_promise(what)
