"""
The device library under Triton's interpreter, which has none: its functions return `None` there, silently.

A library function dispatches on its arguments' types and asks the builder for a symbol: `__nv_tanhf` on NVIDIA, `__ocml_tanh_f32` or
`__triton_hip_rint` on AMD. Here the symbol's function is computed with numpy. A symbol without a function in `FUNCTIONS` raises
`UnsupportedHere` with its name. Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterator
from statistics import NormalDist
from types import ModuleType
from typing import Any

import numpy as np
import triton
from numpy.typing import NDArray
from triton.language import core
from triton.language.extra import libdevice as portable
from triton.language.extra.cuda import libdevice as cuda
from triton.language.extra.hip import libdevice as hip
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

Array = NDArray[Any]
Function = Callable[..., Any]

_SYMBOL = re.compile(r"__(?:ocml|nv|triton_hip)_(?P<name>\w+?)(?:_f(?:16|32|64))?")
_SAME = {
    "fast_fdividef": "fast_dividef",
    "iabs": "abs",
    "pown": "powi",
    "i0": "cyl_bessel_i0",
    "mul64hi": "mulhi",
    "umul64hi": "umulhi",
}
"""Symbols that are called differently from the function that they compute."""
_ROUNDINGS: dict[str, Function] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
_INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
_FLOATS = {"float": np.float32, "double": np.float64}


def _each(function: Callable[..., float], at_pole: float = math.nan) -> Function:
    """A function of Python floats as a function of arrays: `at_pole` where Python raises `ValueError`, infinity where it overflows."""

    def one(*args: float) -> float:
        if any(map(math.isnan, args)):
            return math.nan
        try:
            return function(*args)
        except ValueError:
            return at_pole
        except OverflowError:
            return math.inf

    return np.vectorize(one, otypes=[np.float64])


def _wide(function: Function) -> Function:
    """A function that is computed in float64, so that nothing overflows on the way to a float32."""
    return lambda *args: function(*(x.astype(np.float64) if x.dtype.kind == "f" else x for x in args))


def _converted(rounded: Function, to: Any) -> Function:
    """Float to integer: what is out of range is clamped, NaN gives 0."""
    limits = np.iinfo(to)

    def convert(x: Array) -> Array:
        whole = rounded(x.astype(np.float64))
        inside = (whole > limits.min) & (whole < limits.max)
        bound = np.where(whole >= limits.max, to(limits.max), to(limits.min))
        exact = np.where(inside, whole, 0).astype(to)
        return np.where(inside, exact, np.where(np.isnan(x), to(0), bound))

    return convert


def _directed(function: Function, mode: str, to: Any = None) -> Function:
    """`function`, computed in longdouble and rounded to the argument's type (or to the type `to`) in one direction."""
    towards = {"rz": 0.0, "rd": -math.inf, "ru": math.inf}[mode]

    def compute(*args: Array) -> Array:
        dtype = to or args[0].dtype.type
        exact = np.asarray(function(*(x.astype(np.longdouble) for x in args)))
        near = exact.astype(dtype)
        if mode == "rz":
            beyond = np.abs(near) > np.abs(exact)
        else:
            beyond = near > exact if mode == "rd" else near < exact
        return np.asarray(np.where(beyond, np.nextafter(near, dtype(towards)), near))

    return compute


_ARITHMETIC: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "fma": lambda x, y, z: x * y + z,
}


def _arithmetic() -> Iterator[tuple[str, Function]]:
    for name, function in _ARITHMETIC.items():
        yield f"{name}_rn", _wide(function) if name == "fma" else function
        for mode in ("rz", "rd", "ru"):
            yield f"{name}_{mode}", _directed(function, mode)


def _conversions() -> Iterator[tuple[str, Function]]:
    for (kind, to), (mode, rounded) in itertools.product(_INTEGERS.items(), _ROUNDINGS.items()):
        for name in _FLOATS:
            yield f"{name}2{kind}_{mode}", _converted(rounded, to)
    for kind, (name, float_type) in itertools.product(_INTEGERS, _FLOATS.items()):
        yield f"{kind}2{name}_rn", lambda x, to=float_type: x.astype(to)
        for mode in ("rz", "rd", "ru"):
            yield f"{kind}2{name}_{mode}", _directed(np.positive, mode, float_type)
    yield "double2float_rn", lambda x: x.astype(np.float32)
    for mode in ("rz", "rd", "ru"):
        yield f"double2float_{mode}", _directed(np.positive, mode, np.float32)
    views = {
        "int": np.int32,
        "uint": np.uint32,
        "float": np.float32,
        "longlong": np.int64,
        "double": np.float64,
    }
    for before, after in itertools.permutations(views, 2):
        yield (
            f"{before}_as_{after}",
            lambda x, to=views[after]: np.ascontiguousarray(x).view(to).reshape(x.shape),
        )


def _bits(x: Array) -> Array:
    return np.asarray(x.view(f"u{x.dtype.itemsize}"))


def _of_bits(function: Callable[[int, int], int]) -> Function:
    """A function of an integer's bits and their number."""

    def compute(x: Array) -> Array:
        width = x.dtype.itemsize * 8
        return np.asarray(
            np.vectorize(lambda value: function(int(value), width), otypes=[np.uint64])(_bits(x))
        )

    return compute


def _upper_half(a: Array, b: Array) -> Array:
    return np.asarray((a.astype(object) * b.astype(object)) >> (a.dtype.itemsize * 8))


def _byte_perm(a: Array, b: Array, selector: Array) -> Array:
    both = (_bits(b).astype(np.uint64) << np.uint64(32)) | _bits(a)
    result = np.zeros_like(both)
    for place in range(4):
        byte = (_bits(selector).astype(np.uint64) >> np.uint64(4 * place)) & np.uint64(7)
        result |= ((both >> (byte * np.uint64(8))) & np.uint64(0xFF)) << np.uint64(8 * place)
    return result.astype(np.uint32).view(np.int32)


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), np.copysign(0, x))


def _exponent(x: Array) -> Array:
    """What `ilogb` gives: the smallest integer for zero and NaN, the largest for infinity."""
    limits = np.iinfo(np.int32)
    finite = np.isfinite(x) & (x != 0)
    special = np.where(np.isinf(x), limits.max, limits.min)
    return np.where(finite, np.frexp(np.where(finite, x, 1))[1] - 1, special)


def _logb(x: Array) -> Array:
    finite = np.isfinite(x) & (x != 0)
    return np.where(finite, _exponent(x), np.where(x == 0, -np.inf, np.abs(x)))


def _inverse_normal(p: float) -> float:
    if p in (0.0, 1.0):
        return math.copysign(math.inf, p - 0.5)
    return NormalDist().inv_cdf(p)


def _erfinv(x: float) -> float:
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    guess = NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2) if abs(x) > 1e-8 else x * math.sqrt(math.pi) / 2
    return guess - (math.erf(guess) - x) * math.sqrt(math.pi) / 2 * math.exp(guess * guess)


def _erfcinv(x: float) -> float:
    return -_inverse_normal(x / 2) / math.sqrt(2)


def _erfcx(x: float) -> float:
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    terms = itertools.accumulate(range(1, 12, 2), lambda term, odd: -term * odd / (2 * x * x), initial=1.0)
    return sum(terms) / (x * math.sqrt(math.pi))


def _norm(*parts: Array) -> Array:
    return np.asarray(np.sqrt(np.sum([part * part for part in parts], axis=0)))


_erf, _erfc = _each(math.erf), _each(math.erfc)

FUNCTIONS: dict[str, Function] = {
    "abs": np.abs,
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "llrint": _converted(np.rint, np.int64),
    "round": _half_away,
    "llround": _converted(_half_away, np.int64),
    "saturatef": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "logb": _logb,
    "ilogb": _exponent,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rsqrt_rn": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinpi": _wide(lambda x: np.sin(np.pi * np.fmod(x, 2))),
    "cospi": _wide(lambda x: np.cos(np.pi * np.fmod(x, 2))),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
    "erfc": _erfc,
    "erfcx": _each(_erfcx),
    "erfinv": _each(_erfinv),
    "erfcinv": _each(_erfcinv),
    "normcdf": _wide(lambda x: _erfc(-x / math.sqrt(2)) / 2),
    "normcdfinv": _each(_inverse_normal),
    "lgamma": _each(math.lgamma, math.inf),
    "tgamma": _each(math.gamma),
    "cyl_bessel_i0": np.i0,
    "pow": np.power,
    "powi": _wide(np.power),
    "fmod": np.fmod,
    "remainder": _each(math.remainder),
    "fdim": lambda x, y: np.where(x <= y, 0, x - y),
    "hypot": np.hypot,
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "norm3d": _wide(_norm),
    "norm4d": _wide(_norm),
    "rnorm3d": _wide(lambda *parts: 1 / _norm(*parts)),
    "rnorm4d": _wide(lambda *parts: 1 / _norm(*parts)),
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "ldexp": np.ldexp,
    "scalbn": np.ldexp,
    "fma": _wide(_ARITHMETIC["fma"]),
    "fast_sinf": np.sin,
    "fast_cosf": np.cos,
    "fast_tanf": np.tan,
    "fast_tanhf": np.tanh,
    "fast_expf": np.exp,
    "fast_exp10f": lambda x: np.power(x.dtype.type(10), x),
    "fast_logf": np.log,
    "fast_log2f": np.log2,
    "fast_log10f": np.log10,
    "fast_powf": lambda x, y: np.exp2(y * np.log2(x)),
    "fast_dividef": np.divide,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "finite": np.isfinite,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "clz": _of_bits(lambda value, width: width - value.bit_length()),
    "ffs": _of_bits(lambda value, _: (value & -value).bit_length()),
    "popc": _of_bits(lambda value, _: value.bit_count()),
    "brev": _of_bits(lambda value, width: int(f"{value:0{width}b}"[::-1], 2)),
    "byte_perm": _byte_perm,
    "mulhi": _upper_half,
    "umulhi": _upper_half,
    "mul24": np.multiply,
    "umul24": np.multiply,
    "hadd": lambda x, y: (x.astype(object) + y.astype(object)) >> 1,
    "rhadd": lambda x, y: (x.astype(object) + y.astype(object) + 1) >> 1,
    "sad": lambda x, y, z: np.abs(x.astype(np.int64) - y) + z,
    "hiloint2double": lambda high, low: ((_bits(high).astype(np.uint64) << np.uint64(32)) | _bits(low)).view(
        np.float64
    ),
    "double2hiint": lambda x: _bits(x) >> np.uint64(32),
    "double2loint": lambda x: _bits(x) & np.uint64(0xFFFFFFFF),
    **dict(_arithmetic()),
    **dict(_conversions()),
}


def install(cannot: Callable[[str], Exception], missing: str) -> None:
    """Let kernels call the three device libraries; `cannot` and `missing` make the refusal of a function that is not in the table."""

    def create_extern_elementwise(_: Any, *given: Any) -> TensorHandle:
        _, _, symbol, handles, result_type, _ = given
        function = function_of(symbol)
        if function is None:
            raise cannot(missing.format(what=f"`{symbol}` of the device library"))
        with np.errstate(all="ignore"):
            values = np.asarray(function(*(handle.data for handle in handles)))
        dtype = result_type.scalar
        wanted = interpreter._get_np_dtype(dtype)
        if wanted.kind in "iu" and values.dtype != wanted:
            # Bits beyond the result's are cut off, whatever the sign.
            values = (
                (values.astype(object) & ((1 << dtype.primitive_bitwidth) - 1))
                .astype(f"u{wanted.itemsize}")
                .view(wanted)
            )
        return TensorHandle(values.astype(wanted, copy=False), dtype)

    interpreter.InterpreterBuilder.create_extern_elementwise = create_extern_elementwise
    for module in (cuda, hip):
        for name, function in _functions(module):
            _replace(module, name, _called_by_kernels(name, function))
    own, foreign = (
        (hip, cuda) if triton.runtime.driver.active.get_current_target().backend == "hip" else (cuda, hip)
    )
    for name, _ in _functions(portable):
        function = vars(own).get(name) or vars(foreign).get(name)
        _replace(portable, name, _called_by_kernels(name, function or _refusing(cannot, missing, name)))


def function_of(symbol: str) -> Function | None:
    """What a symbol of a device's library computes, as `__ocml_tanh_f32` or `__nv_tanhf`; `None` where that is not known."""
    match = _SYMBOL.fullmatch(symbol)
    if not match:
        return None
    name = match["name"]
    # NVIDIA's symbols name their types: tanhf, isnand, isinff, dadd_rn, clzll, llabs, uhadd.
    names = (
        name,
        _SAME.get(name, ""),
        *(name.removesuffix(end) for end in ("f", "d", "ll")),
        *(name.removeprefix(begin) for begin in ("f", "d", "ll", "u")),
        re.sub(r"f(_r\w)$", r"\1", name),
    )
    return next((FUNCTIONS[name] for name in names if name in FUNCTIONS), None)


def _functions(module: ModuleType) -> Iterator[tuple[str, Function]]:
    for name, function in list(vars(module).items()):
        if not name.startswith("_") and inspect.isfunction(function) and _is_defined_in(module, function):
            yield name, function


def _is_defined_in(module: ModuleType, function: Function) -> bool:
    return bool(inspect.unwrap(function).__module__ == module.__name__)


def _replace(module: ModuleType, name: str, function: Function) -> None:
    """Put a function into the library under the name and module of the one that it replaces, so that records can name it."""
    function.__name__, function.__module__ = name, module.__name__
    setattr(module, name, function)


def _called_by_kernels(name: str, function: Function) -> Function:
    """A library function for kernels of the interpreter, which pass no `_semantic`."""
    builtin = core.is_builtin(function)

    def call(*args: Any, **named: Any) -> Any:
        if not builtin:
            return function(*args, **named)
        try:
            return function(*args, **named | {"_semantic": interpreter.interpreter_semantic})
        except KeyError as unlisted:
            types = ", ".join(map(str, unlisted.args[0] if unlisted.args else ()))
            raise TypeError(f"libdevice.{name} takes no ({types}); cast to float32 first") from None

    return call


def _refusing(cannot: Callable[[str], Exception], missing: str, name: str) -> Function:
    def refuse(*_: Any, **__: Any) -> Any:
        raise cannot(missing.format(what=f"libdevice.{name}"))

    return refuse
