"""
What kernels promise a compiler of their values, held to: `tl.multiple_of`, `tl.max_contiguous`, `tl.max_constancy`.

The interpreter believes them and does not use them; a compiler makes wide accesses of them. Here lanes that break a promise of
neighbourhood get what the promise says they may get, another value, so that it shows in the outputs where they count: a row
index that wraps around (`tl.max_contiguous(rows % m, BLOCK)`) breaks it in lanes that no store lets out, which is right. A
false divisor has no such excuse. Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """Puts the checking functions where kernels find them, until the scope is restored."""
    for owner in (tl, tl.core):
        scope.set_attr(owner, "multiple_of", _promising("multiple_of", _divides))
        scope.set_attr(owner, "max_contiguous", _promising("max_contiguous", _run))
        scope.set_attr(owner, "max_constancy", _promising("max_constancy", _repeat))


def _promising(name: str, hold: Callable[[str, Any, list[int]], None]) -> Callable[..., Any]:
    def promise(input: Any, values: Any) -> Any:
        if not isinstance(input, tl.tensor):
            return input
        listed = values if isinstance(values, (list, tuple, tl.tuple)) else [values]
        given = [int(one.value) if isinstance(one, tl.constexpr) else int(one) for one in listed]
        if len(given) != max(1, len(input.shape)):
            raise ValueError(f"tl.{name} takes a value for each dimension, {len(input.shape)} here")
        hold(name, input, given)
        return input

    return operation(name, promise, changes=True)


def _divides(name: str, input: Any, given: Sequence[int]) -> None:
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
            _note_false(f"`tl.{name}` promises multiples of {number}, and {what}")
            return


def _are_neighbours(lanes: Values, step: int) -> bool:
    """Whether any are: indices that wrap around may do so after the first."""
    return bool((np.diff(lanes.astype(np.int64), axis=0) == step).any())


def _run(name: str, input: Any, given: Sequence[int]) -> None:
    """Lanes that do not follow the first of their group by as much as promised become that first one."""
    _bend(name, input, given, _step(input))


def _repeat(name: str, input: Any, given: Sequence[int]) -> None:
    """Lanes that differ from the first of their group become that first one."""
    _bend(name, input, given, 0)


def _bend(name: str, input: Any, given: Sequence[int], step: int) -> None:
    if not input.shape:
        return
    for axis, count in enumerate(given):
        data = input.handle.data
        lanes = np.moveaxis(data, axis, -1)
        size = min(count & -count, lanes.shape[-1])
        if size <= 1 or (data.dtype.kind not in "iu" and step):
            continue
        groups = lanes.reshape(*lanes.shape[:-1], -1, size)
        first = groups[..., :1]
        places = (np.arange(size) * step).astype(data.dtype)
        broken = groups != first + places
        if not broken.any():
            continue
        kept = np.where(broken, first, groups).reshape(lanes.shape)
        # The handle may share its array with others that were promised nothing.
        input.handle.data = np.ascontiguousarray(np.moveaxis(kept, -1, axis))
        _note_bent(
            f"`tl.{name}` promises groups of {count}, which {int(broken.sum())} of {data.size} lanes break"
        )


def _step(input: Any) -> int:
    """From one neighbour to the next."""
    if isinstance(input.dtype, tl.pointer_type):
        return max(int(input.dtype.element_ty.primitive_bitwidth) // 8, 1)
    return 1


def _note_false(what: str) -> None:
    observation = current()
    if observation is not None:
        observation.note_false_promise(what)


def _note_bent(what: str) -> None:
    observation = current()
    if observation is not None:
        observation.note_bent_promise(what)
