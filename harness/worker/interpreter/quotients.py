"""
Masks made of quotients of negative numbers, as compilers take them.

Quotients are rounded towards zero: -4 // 4 is -1 and -3 // 4 is 0. Triton's AxisInfo takes those of an aligned group for alike,
whatever their sign, and a vectorised access asks the mask of the group's first lane alone (3.7, seen in the code for gfx942 and sm_90). Elsewhere
masks are what they would be if such quotients were alike; values are what they are. Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from .observing import is_elsewhere

Values = NDArray[Any]

GROUPS = (16, 8, 4, 2)
"""Lanes that one access may hold, of 16 bytes."""
_WITH_ONE_VALUE = ("create_add", "create_sub", "create_mul")
_COMPARING = tuple(
    f"create_icmp{how}" for how in ("EQ", "NE", "SLT", "SLE", "SGT", "SGE", "ULT", "ULE", "UGT", "UGE")
)
_JOINING = ("create_and", "create_or", "create_xor")
_SHAPING = ("create_expand_dims", "create_broadcast")


def install() -> None:
    """Once a process, before `accesses.install`."""
    builder = interpreter.InterpreterBuilder
    builder.create_sdiv = _quotient(builder.create_sdiv)
    for name in (*_WITH_ONE_VALUE, *_COMPARING, *_JOINING):
        setattr(builder, name, _binary(getattr(builder, name), joins=name in _JOINING))
    for name in _SHAPING:
        setattr(builder, name, _shaping(getattr(builder, name)))


def taken(mask: Any) -> Any:
    """The mask of an access as a compiler takes it."""
    alike = getattr(mask, "alike", None)
    return mask if alike is None else TensorHandle(alike, mask.dtype)


def _quotient(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def divide(self: Any, lhs: Any, rhs: Any) -> Any:
        result = method(self, lhs, rhs)
        if is_elsewhere() and result.data.size > 1 and (lhs.data < 0).any():
            result.alike = _grouped(result.data, lhs.data, rhs.data)
        return result

    return divide


def _binary(method: Callable[..., Any], *, joins: bool) -> Callable[..., Any]:
    @functools.wraps(method)
    def operate(self: Any, lhs: Any, rhs: Any) -> Any:
        result = method(self, lhs, rhs)
        left, right = hasattr(lhs, "alike"), hasattr(rhs, "alike")
        if (left or right) and (joins or ((left or _is_one(lhs)) and (right or _is_one(rhs)))):
            result.alike = method(self, _alike(lhs), _alike(rhs)).data
        return result

    return operate


def _shaping(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def shape(self: Any, arg: Any, *rest: Any, **named: Any) -> Any:
        result = method(self, arg, *rest, **named)
        if hasattr(arg, "alike"):
            result.alike = method(self, _alike(arg), *rest, **named).data
        return result

    return shape


def _alike(handle: Any) -> Any:
    return TensorHandle(getattr(handle, "alike", handle.data), handle.dtype)


def _is_one(handle: Any) -> bool:
    """Whether all lanes have one value, which keeps neighbours alike."""
    return bool((handle.data == handle.data.flat[0]).all())


def _grouped(found: Values, values: Values, by: Values) -> Values:
    """The quotients, where those of lanes that follow a negative multiple of their group's size one by one are that of their first."""
    shape = found.shape
    values, by = np.broadcast_to(values, shape), np.broadcast_to(by, shape)
    divisor = int(np.gcd.reduce(np.abs(by.astype(np.int64)), axis=None))
    result, left = found.copy(), np.ones(shape, dtype=np.bool_)
    for axis, length in enumerate(shape):
        for size in GROUPS:
            if divisor % size or length % size:
                continue
            split = (*shape[:axis], length // size, size, *shape[axis + 1 :])
            steps = np.arange(size).reshape(size, *[1] * (len(shape) - axis - 1))
            of, under, open_, given = (one.reshape(split) for one in (values, by, left, found))
            first, divisors = np.take(of, [0], axis + 1), np.take(under, [0], axis + 1)
            follows = ((of == first + steps) & (under == divisors)).all(axis + 1, keepdims=True)
            bent = follows & (first < 0) & (first % size == 0) & open_
            result = np.where(bent, np.take(given, [0], axis + 1), result.reshape(split)).reshape(shape)
            left = left & ~bent.reshape(shape)
    return result
