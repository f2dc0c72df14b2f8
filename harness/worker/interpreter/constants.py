"""
Arguments of launches as a compiler takes them: an integer that is one is a constant, whose quotients are Python's.

The interpreter makes a tensor of it. As there, no parameter of a fixed type and none that is listed in `do_not_specialize`
becomes one, and constants go on as constants into the functions that they are handed to. Touches the internals of Triton's
interpreter and launcher (3.6 and 3.7).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from triton.runtime import interpreter
from triton.runtime.jit import KernelParam

_KEPT = "no_constants"
"""Of a kernel's rewritten function: parameters that stay tensors."""


def install() -> None:
    """Once a process: the function that a launch runs knows which parameters become no constants."""
    rewrite = interpreter.InterpretedFunction.rewrite

    def rewritten(self: Any) -> Any:
        fn = rewrite(self)
        fn.__dict__[_KEPT] = unspecialised(self)
        return fn

    interpreter.InterpretedFunction.rewrite = rewritten


def unspecialised(kernel: Any) -> tuple[str, ...]:
    """Parameters of a jit function that an argument of one makes no constant of."""
    listed = getattr(kernel, "do_not_specialize", None) or getattr(kernel, "kwargs", {}).get(
        "do_not_specialize"
    )
    parameters = inspect.signature(kernel.fn).parameters
    return tuple(
        name
        for at, (name, parameter) in enumerate(parameters.items())
        if at in (listed or ())
        or name in (listed or ())
        or KernelParam(at, parameter, False, False).annotation_type
    )


def arguments(executor: Any, bound: Mapping[str, Any]) -> dict[str, Any]:
    """What the programs of a launch are called with."""
    kept = vars(executor.fn).get(_KEPT, ())
    return {
        name: value
        if name in executor.constexprs
        else interpreter._implicit_cvt(value)
        if name in kept
        else _argument(value)
        for name, value in bound.items()
    }


def _argument(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value == 1:
        return 1
    if isinstance(value, tuple):
        return interpreter._tuple_create(value, map(_argument, value))
    return interpreter._implicit_cvt(value)
