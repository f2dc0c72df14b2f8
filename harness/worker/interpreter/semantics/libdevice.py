"""The device library for Triton's interpreter, where its functions silently return `None`.

A library function dispatches on the types of its arguments and calls the builder with a symbol: `__nv_tanhf` on NVIDIA,
`__ocml_tanh_f32` or `__triton_hip_rint` on AMD. Here numpy computes the symbol's function. A symbol that is not in
`FUNCTIONS` raises `UnsupportedHere` with its name.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
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

from harness.worker.interpreter.traffic import refusing

Array = NDArray[Any]
Function = Callable[..., Any]

_SYMBOL = re.compile(r"__(?:ocml|nv|triton_hip)_(?P<name>\w+?)(?:_f(?:16|32|64))?")
_SAME = dict.fromkeys(("mul64hi", "umul64hi", "umulhi"), "mulhi") | {
    "fast_fdividef": "fast_dividef",
    "iabs": "abs",
    "pown": "powi",
}
"""Symbols with another name than the function that they compute."""


def _each(function: Callable[..., float], at_pole: float = math.nan) -> Function:
    """A function of Python floats for arrays: `at_pole` if Python raises `ValueError`, infinity if it overflows."""

    def of_numbers(*args: float) -> float:
        """Compute one element; NaN if an argument is NaN."""
        if any(map(math.isnan, args)):
            return math.nan
        try:
            return function(*args)
        except ValueError:
            return at_pole
        except OverflowError:
            return math.inf

    return np.vectorize(of_numbers, otypes=[np.float64])


def _wide(function: Function) -> Function:
    """The function computed in float64, so that no intermediate result overflows float32."""
    return lambda *args: function(*(x.astype(np.float64) if x.dtype.kind == "f" else x for x in args))


def _to_int64(rounded: Function) -> Function:
    """Float to integer: values out of range are clamped, NaN gives 0."""
    to, limits = np.int64, np.iinfo(np.int64)

    def convert(x: Array) -> Array:
        """Round the values, clamp them to the integer's range, and convert them."""
        whole = rounded(x.astype(np.float64))
        inside = (whole > limits.min) & (whole < limits.max)
        bound = np.where(whole >= limits.max, to(limits.max), to(limits.min))
        exact = np.where(inside, whole, 0).astype(to)
        return np.where(inside, exact, np.where(np.isnan(x), to(0), bound))

    return convert


def _of_bits(function: Callable[[int, int], int]) -> Function:
    """A function of an integer's bits and its width."""

    def compute(x: Array) -> Array:
        width = x.dtype.itemsize * 8
        count = np.vectorize(lambda value: function(int(value), width), otypes=[np.uint64])
        return np.asarray(count(x.view(f"u{x.dtype.itemsize}")))

    return compute


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), np.copysign(0, x))


_SAME_IN_NUMPY = (
    "abs", "floor", "ceil", "trunc", "rint", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt",
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "fmod", "hypot", "copysign", "nextafter", "ldexp", "isnan", "isinf",
    "isfinite", "signbit",
)  # fmt: skip
_IN_NUMPY = dict(zip(_SAME_IN_NUMPY, _SAME_IN_NUMPY, strict=True)) | {
    "acos": "arccos", "asin": "arcsin", "atan": "arctan", "atan2": "arctan2", "acosh": "arccosh", "asinh": "arcsinh",
    "atanh": "arctanh", "nearbyint": "rint", "pow": "power", "scalbn": "ldexp", "finite": "isfinite", "mul24": "multiply",
    "add_rn": "add", "sub_rn": "subtract", "mul_rn": "multiply", "div_rn": "divide", "rcp_rn": "reciprocal", "sqrt_rn": "sqrt",
    "fast_dividef": "divide", "fast_sinf": "sin", "fast_cosf": "cos", "fast_tanf": "tan", "fast_tanhf": "tanh",
    "fast_expf": "exp", "fast_logf": "log", "fast_log2f": "log2", "fast_log10f": "log10",
}  # fmt: skip
_erfc = _each(math.erfc)

FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, numpy_name) for name, numpy_name in _IN_NUMPY.items()},
    "llrint": _to_int64(np.rint),
    "round": _half_away,
    "llround": _to_int64(_half_away),
    "saturatef": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
    **dict.fromkeys(("exp10", "fast_exp10f"), lambda x: np.power(x.dtype.type(10), x)),
    **dict.fromkeys(("rsqrt", "rsqrt_rn"), lambda x: 1 / np.sqrt(x)),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "sinpi": _wide(lambda x: np.sin(np.pi * np.fmod(x, 2))),
    "cospi": _wide(lambda x: np.cos(np.pi * np.fmod(x, 2))),
    "erf": _each(math.erf),
    "erfc": _erfc,
    "normcdf": _wide(lambda x: _erfc(-x / math.sqrt(2)) / 2),
    "lgamma": _each(math.lgamma, math.inf),
    "tgamma": _each(math.gamma),
    "powi": _wide(np.power),
    "remainder": _each(math.remainder),
    "fdim": lambda x, y: np.where(x <= y, 0, x - y),
    **dict.fromkeys(("fma", "fma_rn"), _wide(lambda x, y, z: x * y + z)),
    "fast_powf": lambda x, y: np.exp2(y * np.log2(x)),
    "clz": _of_bits(lambda value, width: width - value.bit_length()),
    "ffs": _of_bits(lambda value, _: (value & -value).bit_length()),
    "popc": _of_bits(lambda value, _: value.bit_count()),
    "mulhi": lambda a, b: (a.astype(object) * b.astype(object)) >> (a.dtype.itemsize * 8),
}


def install() -> None:
    """Let kernels call the three device libraries."""
    for module in (cuda, hip):
        for name, function in _functions(module):
            _replace(module, name, _called_by_kernels(name, function))
    backend = triton.runtime.driver.active.get_current_target().backend
    own, foreign = (hip, cuda) if backend == "hip" else (cuda, hip)
    for name, _ in _functions(portable):
        function = vars(own).get(name) or vars(foreign).get(name) or refusing(f"libdevice.{name}")
        _replace(portable, name, _called_by_kernels(name, function))


def function_of(symbol: str) -> Function | None:
    """The function that a symbol such as `__ocml_tanh_f32` or `__nv_tanhf` computes; `None` if it is unknown."""
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
    """Yield the public functions that a module defines itself, by name."""
    for name, function in list(vars(module).items()):
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if inspect.unwrap(function).__module__ == module.__name__:
            yield name, function


def _replace(module: ModuleType, name: str, function: Function) -> None:
    """Replace a library function under its own name and module, so that records can name it."""
    function.__name__, function.__module__ = name, module.__name__
    setattr(module, name, function)


def _called_by_kernels(name: str, function: Function) -> Function:
    """A library function for interpreted kernels, which pass no `_semantic`."""
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
