"""
Results that Triton leaves open: integer operations without one, clamps between bounds that cross or are no numbers, and the order of
elements where a kernel gives it away.

LLVM takes what follows from such a result for unreachable or for anything, devices differ, and numpy has one value for all.
Here they have another value than numpy's, and numpy's where they run with another device's arithmetic, so that whatever depends on them
shows in the outputs; lanes that no store lets out may hold them, as `tl.where(n > 0, a // n, 0)` does. Touches the
internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from .lines import candidate_line
from .observing import current, is_elsewhere
from .places import counted
from .shaping import Differs

Values = NDArray[Any]
Lanes = NDArray[np.bool_]


def install() -> None:
    """Once a process, after the types' own modules and before `accesses.install`."""
    builder = interpreter.InterpreterBuilder
    for name in ("create_shl", "create_lshr", "create_ashr"):
        setattr(builder, name, _binary(getattr(builder, name), _beyond_width))
    for name in ("create_sdiv", "create_udiv", "create_srem", "create_urem"):
        setattr(builder, name, _binary(getattr(builder, name), _noted_without_quotient))
    for name in ("create_fp_to_si", "create_fp_to_ui"):
        setattr(builder, name, _cast(getattr(builder, name)))
    builder.create_clampf = _clamping(builder.create_clampf)
    reshape, cat = builder.create_reshape, builder.create_cat

    def create_reshape(self: Any, arg: Any, shape: Any, allow_reorder: Any) -> Any:
        result = reshape(self, arg, shape, allow_reorder)
        return _in_another_order(result) if allow_reorder else result

    def create_cat(self: Any, lhs: Any, rhs: Any) -> Any:
        return _in_another_order(cat(self, lhs, rhs))

    builder.create_reshape, builder.create_cat = create_reshape, create_cat


def _binary(method: Callable[..., Any], broken: Callable[[Values, Values], Lanes]) -> Callable[..., Any]:
    @functools.wraps(method)
    def operate(self: Any, lhs: Any, rhs: Any) -> Any:
        lanes = broken(lhs.data, rhs.data)
        return _without(method(self, lhs, rhs), lanes)

    return operate


def _cast(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def cast(self: Any, src: Any, dst_type: Any) -> Any:
        result = method(self, src, dst_type)
        if src.data.dtype.kind != "f" or result.data.dtype.kind not in "iu":
            return result
        limits = np.iinfo(result.data.dtype)
        whole = np.trunc(src.data.astype(np.float64))
        # The largest of 64 bits is no float64, the next one is.
        inside = (whole >= float(limits.min)) & (whole < float(limits.max + 1))
        return _without(result, ~inside)

    return cast


def _clamping(clamp: Callable[..., Any]) -> Callable[..., Any]:
    """Elsewhere the lower bound counts last, and what is no number becomes the upper one: an sm_90 does it by signs where bounds are opposite."""

    @functools.wraps(clamp)
    def create_clampf(self: Any, value: Any, low: Any, high: Any, propagate_nan: Any) -> Any:
        result = clamp(self, value, low, high, propagate_nan)
        if is_elsewhere():
            crossed, nan = ~(low.data <= high.data), np.isnan(value.data)
            kept = propagate_nan == interpreter._ir.PROPAGATE_NAN.ALL
            other = np.fmax(np.fmin(value.data, high.data), low.data)
            result.data = np.where(crossed & ~nan if kept else crossed | nan, other, result.data)
        return result

    return create_clampf


def _beyond_width(values: Values, by: Values) -> Lanes:
    """Shifts by less than nothing, or by all bits or more."""
    lanes: Lanes = (by < 0) | (by >= values.dtype.itemsize * 8)
    return lanes


def _without_quotient(values: Values, by: Values) -> Lanes:
    """Division by zero, and that of the least integer by -1, which has no positive counterpart."""
    lanes: Lanes = by == 0
    if values.dtype.kind == "i":
        lanes = lanes | ((values == np.iinfo(values.dtype).min) & (by == -1))
    return lanes


def _noted_without_quotient(values: Values, by: Values) -> Lanes:
    lanes = _without_quotient(values, by)
    if lanes.any():
        _note_quotient(int(np.count_nonzero(lanes)))
    return lanes


def _note_quotient(lanes: int) -> None:
    """`Differs` where the kernel has to run in Python for its line."""
    observation = current()
    if observation is None:
        return
    if not candidate_line()[1]:
        raise Differs
    observation.note_quotient(
        f"{counted(lanes)} divided by zero, or the least integer by -1: a compiler may leave out anything then, also where the result "
        "is not used; divide by `tl.where(n == 0, 1, n)`"
    )


def _without(result: Any, lanes: Lanes) -> Any:
    """The result with other values in these lanes; programs elsewhere see numpy's."""
    if not is_elsewhere() and lanes.any():
        result.data = np.where(lanes, ~result.data, result.data)
    return result


def _in_another_order(result: Any) -> Any:
    """From the last to the first; programs elsewhere see the order that a careless author expects."""
    if is_elsewhere():
        return result
    return TensorHandle(
        np.ascontiguousarray(result.data.reshape(-1)[::-1]).reshape(result.data.shape), result.dtype
    )
