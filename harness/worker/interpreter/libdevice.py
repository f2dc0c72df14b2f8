# ruff: noqa: ARG001 -- stands in for library functions, whose arguments are theirs
"""
The device library under Triton's interpreter, which has none: its functions return `None` there, silently.

The functions that kernels use most are computed with numpy in the operand's own precision; the others say that this device cannot judge.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.extra import libdevice as portable
from triton.language.extra.cuda import libdevice as cuda
from triton.language.extra.hip import libdevice as hip
from triton.runtime.interpreter import TensorHandle, interpreter_semantic

from .arithmetic import fused
from .tracing import operation

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])
_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "expm1": np.expm1,
    "fast_expf": np.exp,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "fast_logf": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "fast_tanhf": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
    "erfc": _erfc,
    "lgamma": _lgamma,
    "pow": np.power,
    "fast_powf": lambda x, y: np.exp2(y * np.log2(x)),
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "fma": fused,
    "div_rn": np.divide,
    "fast_dividef": np.divide,
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "mul_rn": np.multiply,
}
PREDICATES: dict[str, Callable[..., Any]] = {"isnan": np.isnan, "isinf": np.isinf, "signbit": np.signbit}


def install(cannot: Callable[[str], Exception], missing: str) -> None:
    """Replace the functions of the three device libraries; `cannot` and `missing` make the refusal of the rest."""
    for module in (portable, cuda, hip):
        for name, function in vars(module).copy().items():
            if (
                name.startswith("_")
                or not inspect.isfunction(function)
                or function.__module__ != module.__name__
            ):
                continue
            setattr(module, name, _replacement(name, cannot, missing))


def _replacement(name: str, cannot: Callable[[str], Exception], missing: str) -> Callable[..., Any]:
    compute, predicate = FUNCTIONS.get(name), PREDICATES.get(name)

    def replacement(*args: Any, **named: Any) -> Any:
        operands = [interpreter_semantic.to_tensor(arg) for arg in args]
        floats = [operand for operand in operands if operand.dtype in (tl.float32, tl.float64)]
        if (compute is None and predicate is None) or not floats:
            raise cannot(missing.format(what=f"libdevice.{name}"))
        dtype = floats[0].dtype
        precision = np.float64 if dtype == tl.float64 else np.float32
        arrays = [operand.handle.data.astype(precision) for operand in operands]
        with np.errstate(all="ignore"):
            data = compute(*arrays) if compute is not None else predicate(*arrays)  # type: ignore[misc]
        result = np.asarray(data).astype(precision if predicate is None else np.int32)
        dtype = dtype if predicate is None else tl.int32
        shaped = next((operand for operand in operands if operand.type.is_block()), None)
        kind = dtype if shaped is None else tl.block_type(dtype, list(result.shape))
        return tl.tensor(TensorHandle(result, dtype), kind)

    replacement.__name__ = name
    return operation(f"libdevice.{name}", replacement, pure=True)
