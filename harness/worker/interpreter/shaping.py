"""Operations of a tape called as the interpreter calls them: what is put together for a call, and what Python is given of it.

Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.runtime.interpreter import BlockPointerHandle, TensorDescHandle, TensorHandle

from . import candidate_lines

HANDLES = (TensorHandle, BlockPointerHandle, TensorDescHandle)


class Differs(Exception):
    """A program reads other bits than the one that was traced."""


class Untraceable(Exception):
    """What a kernel's Python does cannot be written down."""


def handles_of(result: Any) -> tuple[Any, ...]:
    """The handles in what an operation gives; `Untraceable` for anything else."""
    if isinstance(result, HANDLES):
        return (result,)
    if isinstance(result, tl.tensor):
        return (result.handle,)
    if isinstance(result, (tuple, list)):
        return tuple(one for part in result for one in handles_of(part))
    if result is None:
        return ()
    raise Untraceable


def holds(value: Any) -> bool:
    """Whether it is a handle or a tensor, or has one in it."""
    if type(value) in (list, tuple):
        return any(map(holds, value))
    return isinstance(value, (*HANDLES, tl.tensor))


def shown(result: Any) -> Callable[..., Any]:
    """Makes of other handles what `result` is of its own."""
    if result is None:
        return lambda _: None
    if isinstance(result, tl.tensor):
        kind = result.type
        return lambda handles: tl.tensor(handles[0], kind)
    if isinstance(result, (tuple, list)):
        kinds = [getattr(one, "type", None) for one in result]
        return lambda handles: tuple(
            one if kind is None else tl.tensor(one, kind) for one, kind in zip(handles, kinds, strict=True)
        )
    return lambda handles: handles[0]


def flattened(call: Callable[..., Any]) -> Callable[..., Any]:
    """Gives handles alone."""

    def run(*args: Any) -> Any:
        handles = tuple(handles_of(call(*args)))
        return handles[0] if len(handles) == 1 else handles

    return run


def keyworded(method: Callable[..., Any], count: int, names: tuple[str, ...]) -> Callable[..., Any]:
    """Takes the last arguments by name."""

    def run(*args: Any) -> Any:
        return method(*args[:count], **dict(zip(names, args[count:], strict=True)))

    return run


def at_line(call: Callable[..., Any], line: tuple[str, int]) -> Callable[..., Any]:
    """Where the kernel's frame is not there to tell its line."""

    def run(*args: Any) -> Any:
        candidate_lines.replayed.line = line
        try:
            return call(*args)
        finally:
            candidate_lines.replayed.line = None

    return run


def on_copies(call: Callable[..., Any]) -> Callable[..., Any]:
    """Leaves the handles alone that it is given."""

    def run(*args: Any) -> Any:
        return call(*(copied(one) for one in args))

    return run


def copied(value: Any) -> Any:
    """Another handle of the same array, or a tensor with one."""
    if isinstance(value, tl.tensor):
        return tl.tensor(copied(value.handle), value.type)
    if not isinstance(value, TensorHandle):
        return value
    made = object.__new__(TensorHandle)
    made.__dict__.update(value.__dict__)
    return made


def check(dtype: Any, shape: tuple[int, ...], bits: bytes, handle: Any) -> tuple[()]:
    """Raises `Differs` where a handle holds something else."""
    data = handle.data
    if data.dtype != dtype or data.shape != shape or data.tobytes() != bits:
        raise Differs
    return ()


def tensor_of(kind: Any, handle: Any) -> Any:
    """A tensor of the language."""
    return tl.tensor(handle, kind)


def listed(*values: Any) -> list[Any]:
    """As a list."""
    return list(values)


def tupled(*values: Any) -> tuple[Any, ...]:
    """As a tuple."""
    return values
