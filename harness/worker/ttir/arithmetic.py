"""Operations element by element, of the dialects arith and math and of Triton's own, by what the IR's documents promise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.worker.interpreter.float8 import FORMATS

from .kinds import FLOAT8, Kind, kind_of
from .text import Operation
from .together import rank, spread

Array = Any
"""An array, or numpy's scalar where it has no dimension."""
Function = Callable[..., Array]

_ORDERED: tuple[Function | None, ...] = (
    None, np.equal, np.greater, np.greater_equal, np.less, np.less_equal, None, None,
)  # fmt: skip
_WIDE_COMPARED = {
    8: np.equal, 9: np.greater, 10: np.greater_equal, 11: np.less, 12: np.less_equal, 13: np.not_equal,
}  # fmt: skip
"""Predicates of `arith.cmpf` that hold too where either is NaN."""
_COMPARED: tuple[Function, ...] = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
"""By predicate of `arith.cmpi`; from 6 on the last four again, unsigned."""
_BFLOAT16 = kind_of("bf16").dtype
_NO_NUMBER = {
    kind_of("f16").dtype: 0x7E00,
    _BFLOAT16: 0x7FC0,
    kind_of("f32").dtype: 0x7FC00000,
    kind_of("f64").dtype: 0x7FF8000000000000,
}
"""By type, what an operation without a result gives on a device that keeps payloads."""
_HEX = re.compile(r"0x[0-9A-Fa-f]+$")


def constant(operation: Operation) -> Array:
    """The value of `arith.constant`."""
    kind = kind_of(operation.result_kinds[0])
    told = operation.attributes["value"]
    if told in ("true", "false"):
        return kind.dtype.type(told == "true")
    value = told.rpartition(" : ")[0]
    if value.startswith("dense<"):
        return _dense(value[6:-1], kind)
    return _number(value, kind.dtype)


def _dense(told: str, kind: Kind) -> Array:
    if told.startswith('"0x'):
        data = np.frombuffer(bytes.fromhex(told[3:-1]), dtype=kind.dtype)
        return data.reshape(kind.shape).copy()
    items = [one.strip() for one in told.replace("[", "").replace("]", "").split(",")]
    numbers = np.array([_number(one, kind.dtype) for one in items], dtype=kind.dtype)
    return np.broadcast_to(numbers, kind.shape) if numbers.size == 1 else numbers.reshape(kind.shape)


def _number(told: str, dtype: np.dtype[Any]) -> Any:
    if told in ("true", "false"):
        return dtype.type(told == "true")
    if _HEX.match(told):
        bits = int(told, 16).to_bytes(dtype.itemsize, "little")
        return np.frombuffer(bits, dtype=dtype)[0]
    if dtype.kind in "iu":
        return np.array(int(told)).astype(dtype)[()]
    return np.array(float(told)).astype(dtype)[()]


def _unsigned(value: Array) -> Array:
    value = np.asarray(value)
    return value if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")


def _signed(value: Array) -> Array:
    """Of one bit, true is -1."""
    value = np.asarray(value)
    return -value.astype(np.int8) if value.dtype == np.bool_ else value


def _fitted(function: Function) -> Function:
    """A function of signed integers, which keeps the type of its operands, those of one bit too."""

    def fitted(a: Array, b: Array) -> Array:
        if np.asarray(a).dtype != np.bool_:
            return function(a, b)
        return (np.asarray(function(_signed(a), _signed(b))) & 1).astype(np.bool_)

    return fitted


def _unsigned_only(function: Function) -> Function:
    def unsigned(a: Array, b: Array) -> Array:
        kind = np.asarray(a).dtype
        if kind == np.bool_:
            return (function(np.asarray(a).astype(np.uint8), np.asarray(b).astype(np.uint8)) & 1).astype(
                np.bool_
            )
        return np.asarray(function(_unsigned(a), _unsigned(b))).view(kind)

    return unsigned


def _quotient(a: Array, b: Array) -> Array:
    """Towards zero; anything where there is none."""
    a, b = np.asarray(a), np.asarray(b)
    safe = np.where(b == 0, b.dtype.type(1), b)
    found = a // safe
    return found + ((a % safe != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    a, b = np.asarray(a), np.asarray(b)
    return np.fmod(a, np.where(b == 0, b.dtype.type(1), b))


def _unsigned_quotient(a: Array, b: Array) -> Array:
    return a // np.where(b == 0, b.dtype.type(1), b)


def _unsigned_remainder(a: Array, b: Array) -> Array:
    return a % np.where(b == 0, b.dtype.type(1), b)


def _shift(function: Function) -> Function:
    def shifted(a: Array, b: Array) -> Array:
        """By more than its width there is no value; the low bits of the count are as good as any other."""
        width = np.asarray(a).dtype.itemsize * 8
        return function(a, np.bitwise_and(b, np.asarray(b).dtype.type(width - 1)))

    return shifted


def _high_product(a: Array, b: Array) -> Array:
    a, b = np.asarray(a), np.asarray(b)
    wide = _unsigned(a).astype(object) * _unsigned(b).astype(object)
    bits = a.dtype.itemsize * 8
    found = np.asarray(wide) // (1 << bits)
    return np.asarray(found).astype(f"u{a.dtype.itemsize}").view(a.dtype)


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _wide(function: Function) -> Function:
    """Of types that numpy has no such function for."""

    def widened(*values: Array) -> Array:
        dtype = np.asarray(values[0]).dtype
        if dtype in (np.float32, np.float64):
            return np.asarray(function(*values)).astype(dtype)
        return np.asarray(function(*(np.asarray(one).astype(np.float32) for one in values))).astype(dtype)

    return widened


def _fused(a: Array, b: Array, c: Array) -> Array:
    dtype = np.asarray(a).dtype
    if dtype == np.float64:
        return a * b + c
    wide = (np.asarray(one).astype(np.float64) for one in (a, b, c))
    left, right, rest = wide
    return (left * right + rest).astype(dtype)


def _ordered_zeros(function: Function, zero: Function) -> Function:
    """A minimum or maximum by which +0 is more than -0, as on devices; numpy takes either."""

    def chosen(a: Array, b: Array) -> Array:
        found = np.asarray(function(a, b))
        if found.all():
            return found[()]
        return np.where((np.asarray(a) == 0) & (np.asarray(b) == 0), zero(a, b), found).astype(found.dtype)[
            ()
        ]

    return chosen


def _lesser_zero(a: Array, b: Array) -> Array:
    return -(-a + -b)


_minimum, _fmin = (_ordered_zeros(one, _lesser_zero) for one in (np.minimum, np.fmin))
_maximum, _fmax = (_ordered_zeros(one, np.add) for one in (np.maximum, np.fmax))


_TWO: dict[str, Function] = {
    "arith.addi": _fitted(np.add),
    "arith.subi": _fitted(np.subtract),
    "arith.muli": _fitted(np.multiply),
    "arith.divsi": _fitted(_quotient),
    "arith.remsi": _fitted(_remainder),
    "arith.divui": _unsigned_only(_unsigned_quotient),
    "arith.remui": _unsigned_only(_unsigned_remainder),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": _fitted(_shift(np.left_shift)),
    "arith.shrsi": _fitted(_shift(np.right_shift)),
    "arith.shrui": _unsigned_only(_shift(np.right_shift)),
    "arith.minsi": _fitted(np.minimum),
    "arith.maxsi": _fitted(np.maximum),
    "arith.minui": _unsigned_only(np.minimum),
    "arith.maxui": _unsigned_only(np.maximum),
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.minimumf": _minimum,
    "arith.maximumf": _maximum,
    "arith.minnumf": _fmin,
    "arith.maxnumf": _fmax,
    "tt.mulhiui": _high_product,
    "tt.precise_divf": np.divide,
}
_ONE: dict[str, Function] = {
    "arith.negf": np.negative,
    "math.exp": _wide(np.exp),
    "math.exp2": _wide(np.exp2),
    "math.log": _wide(np.log),
    "math.log2": _wide(np.log2),
    "math.sin": _wide(np.sin),
    "math.cos": _wide(np.cos),
    "math.tanh": _wide(np.tanh),
    "math.sqrt": _wide(np.sqrt),
    "math.rsqrt": _wide(lambda x: 1 / np.sqrt(x)),
    "math.floor": _wide(np.floor),
    "math.ceil": _wide(np.ceil),
    "math.erf": _wide(_erf),
    "math.absf": np.abs,
    "math.absi": np.abs,
    "tt.precise_sqrt": _wide(np.sqrt),
}
_CONVERSIONS = frozenset(
    {
        "arith.extsi", "arith.extui", "arith.trunci", "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp",
        "arith.fptosi", "arith.fptoui", "arith.index_cast", "tt.fp_to_fp",
    }
)  # fmt: skip
_SAME_BITS = frozenset({"arith.bitcast", "tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int"})


def elementwise(operation: Operation) -> Function | None:
    """The function of an operation element by element; `None` for any other operation."""
    name = operation.name
    function = _TWO.get(name) or _ONE.get(name)
    if function is not None:
        return function
    if name in _CONVERSIONS:
        return _conversion(operation)
    if name in _SAME_BITS:
        return _same_bits(kind_of(operation.result_kinds[0]).dtype)
    match name:
        case "arith.cmpi":
            return _comparison(operation.number("predicate"))
        case "arith.cmpf":
            return _float_comparison(operation.number("predicate"))
        case "arith.select":
            one, whole = (rank(kind) for kind in (operation.operand_kinds[0], operation.result_kinds[0]))
            if one == whole:
                return np.where
            return lambda condition, yes, no: np.where(spread(condition, whole), yes, no)
        case "math.fma":
            return _fused
        case "tt.clampf":
            takes_nan = operation.number("propagateNan") != 0
            return _clamped if takes_nan else lambda x, low, high: _fmin(_fmax(x, low), high)
        case _:
            return None


def makes_numbers(operation: Operation) -> bool:
    """Whether its results are new floats, which may be none, not bits that were there before."""
    name = operation.name
    if name in ("arith.negf", "math.absf") or kind_of(operation.result_kinds[0]).dtype not in _NO_NUMBER:
        return False
    return name in _TWO or name in _ONE or name in ("math.fma", "tt.clampf", "arith.truncf", "arith.extf")


def device_nan(values: Array, *, is_cuda: bool) -> Array:
    """
    With the bits that a device gives what is no number, where a host's set the sign.

    NVIDIA's have one pattern of up to 32 bits (PTX ISA, "NaN payloads are not preserved"), all ones but the sign; others keep what they
    were given, and what they make has no sign.
    """
    none = np.isnan(values)
    if not none.any():
        return values
    values = np.asarray(values)
    whole = np.dtype(f"i{values.dtype.itemsize}")
    plain, full = _NO_NUMBER[values.dtype], np.iinfo(whole).max
    bits = values.view(whole)
    if is_cuda and whole.itemsize < 8:
        return np.where(none, full, bits).astype(whole).view(values.dtype)[()]
    made = none & (bits == (plain | np.iinfo(whole).min))
    return np.where(made, plain, bits).astype(whole).view(values.dtype)[()]


def _clamped(x: Array, low: Array, high: Array) -> Array:
    return _minimum(_maximum(x, low), high)


def _comparison(predicate: int) -> Function:
    if predicate < 6:
        compare = _COMPARED[predicate]
        return lambda a, b: compare(_signed(a), _signed(b))
    compare = _COMPARED[predicate - 4]
    return lambda a, b: compare(_unsigned(a), _unsigned(b))


def _float_comparison(predicate: int) -> Function:
    ordered = _ORDERED[predicate] if predicate < len(_ORDERED) else None
    if ordered is not None:
        return ordered
    unordered = _WIDE_COMPARED.get(predicate)
    if unordered is not None:
        return lambda a, b: unordered(a, b) | np.isnan(a) | np.isnan(b)
    if predicate == 6:
        return lambda a, b: np.not_equal(a, b) & ~np.isnan(a) & ~np.isnan(b)
    if predicate == 7:
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if predicate == 14:
        return lambda a, b: np.isnan(a) | np.isnan(b)
    return lambda a, _: np.full(np.shape(a), predicate == 15)


def _conversion(operation: Operation) -> Function:
    origin, wanted = kind_of(operation.operand_kinds[0]).dtype, kind_of(operation.result_kinds[0]).dtype
    if wanted == _BFLOAT16 and origin.itemsize >= 4 and origin != np.float32:
        seen = _unsigned if operation.name == "arith.uitofp" else np.asarray
        return lambda value: _to_odd(seen(value)).astype(wanted)
    match operation.name:
        case "arith.extui" | "arith.uitofp":
            return lambda value: _unsigned(value).astype(_through(wanted)).astype(wanted)
        case "arith.trunci" if wanted == np.bool_:
            return lambda value: np.bitwise_and(value, np.asarray(value).dtype.type(1)).astype(np.bool_)
        case "arith.fptoui":
            unsigned = np.dtype(f"u{wanted.itemsize}")
            return lambda value: np.asarray(_number_in(value)).astype(np.int64).astype(unsigned).view(wanted)
        case "arith.fptosi":
            return lambda value: np.asarray(_number_in(value)).astype(wanted)
        case "arith.extsi" | "arith.sitofp":
            return lambda value: np.asarray(_signed(value)).astype(_through(wanted)).astype(wanted)
        case _ if wanted in FLOAT8:
            rounding = operation.attributes.get("rounding", "")
            to_zero = rounding.startswith("0")
            encode = FORMATS[FLOAT8[wanted]].encode
            return lambda value: encode(np.asarray(value).astype(np.float32), to_zero=to_zero).view(wanted)
        case "tt.fp_to_fp" if operation.attributes.get("rounding", "").startswith("0"):
            return lambda value: _cut(value, wanted)
        case _:
            if origin in FLOAT8:
                decode = FORMATS[FLOAT8[origin]].decode
                return lambda value: decode(np.asarray(value).view(np.uint8)).astype(wanted)
            return lambda value: np.asarray(value).astype(wanted)


def _to_odd(value: Array) -> Array:
    """As float32, an odd one where it is not exact, of which narrower floats are rounded as of the value itself."""
    wide = np.asarray(value).astype(np.longdouble)
    with np.errstate(over="ignore"):
        near = wide.astype(np.float32)
    bits = near.view(np.int32)
    cut = bits - (np.abs(near.astype(np.longdouble)) > np.abs(wide))
    odd = (cut | (near != wide)).astype(np.int32).view(np.float32)
    return np.where(np.isnan(near), near, odd)


def _through(wanted: np.dtype[Any]) -> Any:
    """Narrow floats are made of float32, integers as they are."""
    return wanted if wanted.kind in "iu" or wanted.itemsize >= 4 else np.float32


def _number_in(value: Array) -> Array:
    return np.asarray(value).astype(np.float64)


def _cut(value: Array, wanted: np.dtype[Any]) -> Array:
    """Towards zero."""
    value = np.asarray(value)
    near = value.astype(wanted)
    beyond = np.abs(near.astype(np.float64)) > np.abs(value.astype(np.float64))
    bits = near.view(f"i{wanted.itemsize}")
    return np.where(beyond, bits - 1, bits).astype(bits.dtype).view(wanted)


def _same_bits(wanted: np.dtype[Any]) -> Function:
    def seen(value: Array) -> Array:
        value = np.ascontiguousarray(value).reshape(np.shape(value))
        if value.dtype == wanted:
            return value
        if wanted == np.bool_:
            return value.astype(np.bool_)
        if value.dtype == np.bool_:
            return value.astype(wanted)
        return value.view(wanted)

    return seen
