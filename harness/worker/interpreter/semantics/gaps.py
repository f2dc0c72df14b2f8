# ruff: noqa: ARG001 -- the arguments of the interpreter's methods are fixed
"""Refuses by name what Triton's interpreter lacks or computes wrongly, so that it never counts as wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from triton.runtime import interpreter

from harness.worker.interpreter.observing import cannot
from harness.worker.interpreter.semantics import libdevice

from .float_conversions import FLOAT8

_EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz)
NARROW = "the interpreter computes {name} wrongly, so this device cannot judge it"
MISSING = "Triton's interpreter has no {what}, so this device cannot judge it"
OVERLAPS = (
    "a launch with `launch_pdl=True` may begin before the one ahead of it has ended; launches come one after the other here, so "
    "this device cannot judge it"
)


def install() -> None:
    """Raise `UnsupportedHere` if a kernel uses what the interpreter lacks or computes wrongly."""
    builder = interpreter.InterpreterBuilder
    builder.create_inline_asm = refusing(MISSING.format(what="inline_asm"))

    def missing(self: Any, name: str) -> Any:
        if not name.startswith(("create_", "get_")):
            raise AttributeError(name)
        return refusing(MISSING.format(what=name.removeprefix("create_").removeprefix("get_")))

    builder.__getattr__ = missing
    libdevice.install(cannot, MISSING)


def refusing(why: str) -> Callable[..., Any]:
    """A function that raises `UnsupportedHere` at any call."""

    def refuse(*args: Any, **named: Any) -> Any:
        raise cannot(why)

    return refuse


def refuse_overlap(options: Mapping[str, Any]) -> None:
    """Raise `UnsupportedHere` if a launch's options let it run beside other launches."""
    if options.get("launch_pdl"):
        raise cannot(OVERLAPS)


def refuse_narrow(dtype: torch.dtype) -> None:
    """Raise `UnsupportedHere` for a dtype of tensors that the interpreter computes wrongly."""
    if dtype.is_floating_point and dtype.itemsize == 1 and dtype not in _EIGHT_BITS:
        raise cannot(NARROW.format(name=str(dtype).removeprefix("torch.")))


def with_float8(to_ir: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter's `dtype.to_ir`, extended by AMD's 8-bit floats, without the formats that it computes wrongly."""

    def convert(dtype: Any, builder: Any) -> Any:
        if dtype.name in FLOAT8:
            return dtype
        if dtype.is_fp8():
            raise cannot(NARROW.format(name=dtype))
        return to_ir(dtype, builder)

    return convert
