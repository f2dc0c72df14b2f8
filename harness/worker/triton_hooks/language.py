"""Lists what the installed Triton offers to kernels, where models know other versions."""

from __future__ import annotations

import importlib
import inspect

import triton
import triton.language as tl

from harness.wire.messages.server import Language

FURTHER = (
    *("acos", "asin", "atan", "atan2", "cosh", "erfc", "expm1", "fmod", "isinf", "isnan", "log10", "log1p"),
    *("pow", "rint", "round", "sinh", "tan", "tanh", "trunc"),
)
"""Elementary functions that kernels for other versions take from `tl` or `tl.math`."""
OFTEN_USED = (
    *("libdevice", "any", "all", "mean", "var", "argsort", "make_block_ptr", "make_tensor_descriptor"),
    *("dot_scaled", "gather", "topk", "histogram"),
)
"""Names of `tl` that some versions have."""


def installed_language() -> Language:
    """Return the names that the installed version has and lacks."""
    functions = [
        name
        for name, member in vars(tl.math).items()
        if inspect.isfunction(member) and hasattr(tl, name) and not name.startswith("_")
    ]
    beyond = [name for name in FURTHER if not hasattr(tl, name)]
    return Language(
        version=triton.__version__,
        functions=tuple(sorted(functions)),
        libdevice={
            backend: tuple(name for name in beyond if hasattr(library, name))
            for backend in ("cuda", "hip")
            for library in [importlib.import_module(f"triton.language.extra.{backend}.libdevice")]
        },
        absent=tuple(name for name in OFTEN_USED if not hasattr(tl, name)),
    )
