"""
Arithmetic as another device has it. Replays on other values compute with it, and it must make no difference.

- A product that feeds a sum or a difference is not rounded before it, as compilers fuse the two; where a launch says
  `enable_fp_fusion=False` it is, as it is there.
- Quotients, roots and functions that devices do not round correctly give, for about half of all values, the neighbour of what
  they give here that lies on the other side of the true value; a power of e is one of two of a product. Results that are exact,
  infinite or no number stay.
- A remainder of floats is what a rounded quotient leaves of them.
- Sums, scans and dots have other brackets (`reductions`).

Which values those are, which of two products is fused and which brackets are set, a number decides that stands for the device
and that no kernel knows: one that takes all this device's answers for right, or all of another's, is wrong somewhere.

`tl.div_rn`, `tl.sqrt_rn`, `tl.fma` and float64's quotients and roots are the same everywhere. Touches the internals of Triton's
interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from .observing import device, fuses, is_elsewhere

Values = NDArray[Any]
CARRYING = frozenset(
    {"create_expand_dims", "create_broadcast", "create_splat", "create_reshape", "create_trans"}
)
_LOG2_E = 1.4426950408889634
_WIDER = {2: np.float32, 4: np.float64, 8: np.longdouble}
_SPLIT = 134217729.0
"""2^27 + 1: halves the digits of a float64 (T. J. Dekker 1971, A floating-point technique for extending the available precision)."""


class Factors(NamedTuple):
    """What a handle's values are the rounded products of."""

    left: Values
    right: Values
    dtype: Any
    """Of the product."""


class Inexact:
    """A function that no two kinds of device compute alike to the last bit."""

    def __init__(self, here: Callable[..., Any], there: Callable[..., Any] | None = None) -> None:
        self._here = here
        self._there = there or functools.partial(on_the_other_side, here)

    def __call__(self, *args: Any) -> Any:
        """Its result on the device that kernels are on now."""
        return self.now()(*args)

    def now(self) -> Callable[..., Any]:
        """The function itself there."""
        return self._there if is_elsewhere() else self._here


def _in_single(function: Callable[..., Any], *args: Any) -> Any:
    """What devices round correctly in float64 alone."""
    wide = any(np.asarray(one).dtype == np.float64 for one in args)
    return function(*args) if wide else on_the_other_side(function, *args)


def on_the_other_side(function: Callable[..., Any], *args: Any) -> Any:
    """A numpy function's result or the neighbour that the true value lies before; the result itself where it is exact."""
    here = np.asarray(function(*args))
    if here.dtype.kind != "f":
        return here
    true = function(*(np.asarray(one).astype(_WIDER[here.dtype.itemsize]) for one in args))
    return _stepped(here, np.asarray(true))


def _stepped(values: Values, towards: Values) -> Values:
    """Normal numbers, or their neighbours on the way to other ones: their bits, as integers, are one more or less."""
    dtype = values.dtype
    whole = np.dtype(f"i{dtype.itemsize}")
    least, most = _normal(dtype)
    wide, bits = values.astype(towards.dtype), np.ascontiguousarray(values).view(whole)
    size = bits & np.iinfo(whole).max
    up = (towards > wide).astype(whole) - (towards < wide).astype(whole)
    up *= (size >= least) & (size < most) & _drawn(size)
    return np.asarray((bits + np.where(bits < 0, -up, up)).view(dtype))


def _drawn(bits: Values) -> Values:
    """About half of all values, others for each device."""
    mixed = (bits.astype(np.uint32) ^ np.uint32(device() & 0xFFFFFFFF)) * np.uint32(0x9E3779B1)
    return np.asarray(mixed >= np.uint32(1 << 31))


@functools.cache
def _normal(dtype: Any) -> tuple[Any, Any]:
    """The bits of the least and the largest normal number."""
    limits = np.finfo(dtype)
    least, most = np.array([limits.tiny, limits.max], dtype).view(f"i{dtype.itemsize}")
    return least, most


def fused(a: Values, b: Values, c: Values) -> Values:
    """`a * b + c`, rounded once; of float64 nearly so."""
    dtype = np.result_type(a, b, c)
    if dtype.kind != "f":
        return np.asarray(a * b + c)
    if dtype.itemsize < 8:
        left, right, rest = (one.astype(np.float64) for one in (a, b, c))
        return np.asarray(left * right + rest).astype(dtype)
    product = a * b
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)
    exact = total + (error + _lost(a, b, product))
    return np.where(np.isfinite(exact), exact, total)


def _lost(a: Values, b: Values, product: Values) -> Values:
    """What a float64 product lacks of the true one (Dekker's)."""
    a_high, b_high = (_SPLIT * one - (_SPLIT * one - one) for one in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return np.asarray(a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low))


def multiplied(lhs: Any, rhs: Any, product: Any) -> Any:
    """The handle `product`, which remembers its factors where a compiler may fuse it with a sum."""
    if fuses():
        product.factors = Factors(lhs.data, rhs.data, product.dtype)
    return product


def added(lhs: Any, rhs: Any) -> Values:
    """The sum of two handles' values, as it is where programs are."""
    left, right = _factors(lhs), _factors(rhs)
    if left is right or _same(left, right):
        return np.asarray(lhs.data + rhs.data)
    if left is not None and (right is None or device() & 2):
        return fused(left.left, left.right, rhs.data)
    assert right is not None
    return fused(right.left, right.right, lhs.data)


def subtracted(lhs: Any, rhs: Any) -> Values:
    """Their difference, likewise."""
    left, right = _factors(lhs), _factors(rhs)
    if left is right or _same(left, right):
        return np.asarray(lhs.data - rhs.data)
    if left is not None and (right is None or device() & 2):
        return fused(left.left, left.right, -rhs.data)
    assert right is not None
    return fused(-right.left, right.right, lhs.data)


def negated(lhs: Any, rhs: Any, difference: Any) -> Any:
    """The handle `difference`, which is a product where it is one taken from zeros, as `-` is written."""
    factors = _factors(rhs)
    if factors is not None and not lhs.data.any():
        difference.factors = factors._replace(left=-factors.left)
    return difference


def install() -> None:
    """Once a process, before the modules that wrap these methods."""
    builder = interpreter.InterpreterBuilder
    builder.create_fdiv = _method(QUOTIENT, operands=2)
    builder.create_sqrt = _method(ROOT, operands=1)
    for name, function in (
        ("create_rsqrt", _reciprocal_root),
        ("create_exp2", np.exp2),
        ("create_log", np.log),
        ("create_log2", np.log2),
        ("create_sin", np.sin),
        ("create_cos", np.cos),
        ("create_erf", _erf),
    ):
        setattr(builder, name, _method(Inexact(function), operands=1))
    builder.create_exp = _method(POWER_OF_E, operands=1)
    builder.create_frem = _method(REMAINDER, operands=2)
    builder.create_fma, builder.create_fmul, builder.create_fadd, builder.create_fsub = (
        _fma,
        _product,
        _sum,
        _difference,
    )
    builder.create_bitcast = _seen_as_bits(builder.create_bitcast)
    for name in CARRYING:
        setattr(builder, name, _carrying(getattr(builder, name)))


def _power_of_e(x: Values) -> Any:
    """A device's: a power of two, whose exponent is a rounded product; in float64 a library's."""
    if x.dtype == np.float64:
        return on_the_other_side(np.exp, x)
    return on_the_other_side(np.exp2, x * x.dtype.type(_LOG2_E))


QUOTIENT = Inexact(np.divide, functools.partial(_in_single, np.divide))
ROOT = Inexact(np.sqrt, functools.partial(_in_single, np.sqrt))
POWER_OF_E = Inexact(np.exp, _power_of_e)


def _remainder(a: Values, b: Values) -> Values:
    """As far as a rounded quotient leaves it; all of a number where it is divided by an infinite one."""
    whole = np.trunc(a / b)
    left = fused(-whole, b, a) if fuses() else a - whole * b
    return np.where(np.isinf(b), np.fmod(a, b), left).astype(a.dtype)


REMAINDER = Inexact(np.fmod, _remainder)


def _reciprocal_root(x: Values) -> Values:
    return np.asarray(1 / np.sqrt(x))


def _erf(x: Values) -> Values:
    return np.asarray(_erf_of_one(x)).astype(np.result_type(x))


_erf_of_one = np.vectorize(math.erf, otypes=[np.float64])


def _method(function: Inexact, *, operands: int) -> Callable[..., Any]:
    """A builder's method that hands on no more than `function`."""

    def of_one(self: Any, arg: Any) -> Any:
        return self.unary_op(arg, function)

    def of_two(self: Any, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, function)

    return of_one if operands == 1 else of_two


def _product(self: Any, lhs: Any, rhs: Any) -> Any:
    product = self.binary_op(lhs, rhs, np.multiply)
    return multiplied(lhs, rhs, product) if is_elsewhere() else product


def _fma(_: Any, x: Any, y: Any, z: Any) -> Any:
    return TensorHandle(fused(x.data, y.data, z.data), z.dtype.scalar)


def _sum(self: Any, lhs: Any, rhs: Any) -> Any:
    if not is_elsewhere():
        return self.binary_op(lhs, rhs, np.add)
    return self.binary_op(lhs, rhs, lambda *_: added(lhs, rhs))


def _difference(self: Any, lhs: Any, rhs: Any) -> Any:
    if not is_elsewhere():
        return self.binary_op(lhs, rhs, np.subtract)
    return negated(lhs, rhs, self.binary_op(lhs, rhs, lambda *_: subtracted(lhs, rhs)))


FUSED: dict[str, Any] = {"create_fmul": np.multiply, "create_fadd": np.add, "create_fsub": np.subtract}
"""Methods whose results depend on more than values elsewhere, with numpy's functions for them here."""


def _carrying(method: Callable[..., Any]) -> Callable[..., Any]:
    """A product in another shape is one."""

    @functools.wraps(method)
    def carry(self: Any, *args: Any) -> Any:
        result = method(self, *args)
        if not is_elsewhere():
            return result
        for at, found in enumerate(map(_factors, args)):
            if found is not None:
                left, right = (
                    method(self, *args[:at], TensorHandle(one, found.dtype), *args[at + 1 :]).data
                    for one in found[:2]
                )
                result.factors = Factors(left, right, found.dtype)
        return result

    return carry


def _seen_as_bits(method: Callable[..., Any]) -> Callable[..., Any]:
    """Bits of a product that become a number again are that product."""

    @functools.wraps(method)
    def create_bitcast(self: Any, src: Any, dst_type: Any) -> Any:
        result = method(self, src, dst_type)
        found = vars(src).get("factors")
        if found is not None and result is not src:
            result.factors = found
        return result

    return create_bitcast


def _factors(handle: Any) -> Factors | None:
    found: Factors | None = getattr(handle, "__dict__", {}).get("factors")
    return found if found is not None and found.dtype == handle.dtype else None


def _same(left: Factors | None, right: Factors | None) -> bool:
    """Whether both are one product, which a compiler computes once."""
    return left is not None and right is not None and left.left is right.left and left.right is right.right
