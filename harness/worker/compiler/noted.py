"""Launches as far as they must be the same wherever a source runs, of a record and of a compile run alike. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from harness.worker.serving.records import (
    Address,
    Constant,
    Constexpr,
    Descriptor,
    Dtype,
    Function,
    FunctionNotes,
    HostRead,
    Items,
    Language,
    Launch,
    Record,
    Reinterpreted,
    Value,
    View,
)

LOWEST_ADDRESS = 1 << 32
"""Integers from here on may be addresses, which differ from process to process."""
MOST = 256
"""Launches of a case that are told in full."""


class Noted(msgspec.Struct, frozen=True):
    """One launch."""

    kernel: str
    line: int
    grid: tuple[int, int, int]
    values: tuple[str, ...]
    """Arguments and options as `name=value`, in order of their names; of tensors dtype, shape and strides."""


class Launched(msgspec.Struct, frozen=True):
    """What one case launches."""

    case: str
    first: tuple[Noted, ...]
    """At most `MOST`."""
    count: int
    names: tuple[str, ...]
    """Values of the names that jit functions use and do not define, in order."""
    reads: bool
    """Python read tensors' elements, on which launches may depend."""


def launched(case: str, record: Record | None) -> Launched | None:
    """What a call launched where kernels were interpreted; `None` where there is no whole record of it."""
    if record is None or record.excess:
        return None
    launches = [step for step in record.steps if isinstance(step, Launch)]
    return Launched(
        case=case,
        first=tuple(
            Noted(one.kernel.name, one.kernel.line, one.grid, values(one.arguments, one.options))
            for one in launches[:MOST]
        ),
        count=len(launches),
        names=names(record.functions),
        reads=any(isinstance(step, HostRead) for step in record.steps),
    )


def names(functions: Iterable[FunctionNotes]) -> tuple[str, ...]:
    """Values of the names that jit functions use and do not define, in words that are equal for equal values."""
    return tuple(
        sorted(
            f"{name}={_told(value)} in `{one.function.name}` (line {one.function.line})"
            for one in functions
            for name, value in one.names.items()
        )
    )


def values(arguments: Mapping[str, Value], options: Mapping[str, Value]) -> tuple[str, ...]:
    """Arguments and options in words that are equal for equal values."""
    return tuple(f"{name}={_told(value)}" for name, value in sorted({**options, **arguments}.items()))


def difference(ran: Launched, compiled: Launched) -> str:
    """The first launch that is another one where kernels are compiled, in words; empty where there is none."""
    for at, (here, there) in enumerate(zip(ran.first, compiled.first, strict=False), start=1):
        if (here.kernel, here.line, here.grid) != (there.kernel, there.line, there.grid):
            return f"launch {at} is {_named(here)} where kernels are interpreted and {_named(there)} where they are compiled"
        if here.values != there.values:
            only = [one for one in here.values if one not in there.values]
            other = [one for one in there.values if one not in here.values]
            return (
                f"launch {at}, {_named(here)}, has {_few(only)} where kernels are interpreted and {_few(other)} "
                "where they are compiled"
            )
    if ran.names != compiled.names:
        only = [one for one in ran.names if one not in compiled.names]
        other = [one for one in compiled.names if one not in ran.names]
        return (
            f"there is {_few(only)} where kernels are interpreted and {_few(other)} where they are compiled"
        )
    if ran.count != compiled.count:
        return f"there are {ran.count} launches where kernels are interpreted and {compiled.count} where they are compiled"
    return ""


def _named(one: Noted) -> str:
    return f"`{one.kernel}` (line {one.line}) over {one.grid}"


def _few(told: Iterable[str]) -> str:
    return ", ".join(list(told)[:4]) or "nothing else"


def _told(value: Value) -> str:
    match value:
        case View(dtype=dtype, shape=shape, strides=strides):
            return f"{dtype}{list(shape)}{list(strides)}"
        case Reinterpreted(base=base, dtype=dtype):
            return f"{dtype} of {_told(base)}"
        case Descriptor(base=base, shape=shape, strides=strides, block_shape=block):
            return f"descriptor of {_told(base)}, {list(shape)}, {list(strides)}, {list(block)}"
        case Constexpr(value=inner):
            return _told(inner)
        case Items(items=items):
            return f"({', '.join(_told(one) for one in items)})"
        case Dtype(name=name) | Constant(name=name):
            return name
        case Language(module=module, member=member):
            return f"{module}.{member}"
        case Function(name=name, line=line):
            return f"{name}:{line}"
        case Address():
            return "an address"
        case int() if not isinstance(value, bool) and value >= LOWEST_ADDRESS:
            return "an address"
        case _:
            return repr(value)
