"""One operation of a traced program, and the ways to call it on handles alone; see `tracing`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import triton.language as tl
from triton.runtime.interpreter import BlockPointerHandle, TensorDescHandle, TensorHandle

from harness.worker.interpreter import candidate_lines

HANDLES = (TensorHandle, BlockPointerHandle, TensorDescHandle)
PLACE = "create_get_program_id"
GRID = "create_get_num_programs"


class Differs(Exception):
    """A program reads other bits than the traced program."""


class Untraceable(Exception):
    """A kernel's Python does something that a tape cannot hold."""


class Operation(NamedTuple):
    """One operation of a traced program; inputs and outputs are places in the list of the program's values."""

    name: str
    """Empty for operations that Python does not call."""
    number: int
    """How many operations Python called before."""
    call: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    pure: bool
    """It has no effect but its outputs, and the same inputs give the same outputs."""
    repeated: bool
    """A program that goes on in Python may run it again."""
    shown: Callable[..., Any]
    """Makes the result for Python of the outputs."""
    line: candidate_lines.Line = candidate_lines.UNKNOWN
    """The candidate's file and line that called it; unknown for pure operations."""


def handles_of(result: Any) -> tuple[Any, ...]:
    """The handles in an operation's result; `Untraceable` for anything else."""
    if isinstance(result, HANDLES):
        return (result,)
    if isinstance(result, tl.tensor):
        return (result.handle,)
    if isinstance(result, (tuple, list)):
        return tuple(handle for part in result for handle in handles_of(part))
    if result is None:
        return ()
    raise Untraceable


def holds(value: Any) -> bool:
    """Whether the value is a handle or a tensor, or contains one."""
    if type(value) in (list, tuple):
        return any(map(holds, value))
    return isinstance(value, (*HANDLES, tl.tensor))


def shown(result: Any) -> Callable[..., Any]:
    """The function that makes a value like `result` of its handles."""
    if result is None:
        return lambda _: None
    if isinstance(result, tl.tensor):
        kind = result.type
        return lambda handles: tl.tensor(handles[0], kind)
    if isinstance(result, (tuple, list)):
        kinds = [getattr(part, "type", None) for part in result]
        return lambda handles: tuple(
            handle if kind is None else tl.tensor(handle, kind)
            for handle, kind in zip(handles, kinds, strict=True)
        )
    return lambda handles: handles[0]


def flattened(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, with handles as its result."""

    def run(*args: Any) -> Any:
        handles = handles_of(call(*args))
        return handles[0] if len(handles) == 1 else handles

    return run


def keyworded(method: Callable[..., Any], count: int, names: tuple[str, ...]) -> Callable[..., Any]:
    """The method, called with the first `count` arguments by position and the rest by name."""
    return lambda *args: method(*args[:count], **dict(zip(names, args[count:], strict=True)))


def at_line(call: Callable[..., Any], line: candidate_lines.Line) -> Callable[..., Any]:
    """The call at a line of the candidate, as the kernel's frame is not there to give its line."""

    def run(*args: Any) -> Any:
        candidate_lines.replayed.line = line
        try:
            return call(*args)
        finally:
            candidate_lines.replayed.line = None

    return run


def on_copies(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call on copies of its handles, so that it does not change them."""
    return lambda *args: call(*map(copied, args))


def copied(value: Any) -> Any:
    """A new handle of the same array, or a tensor with a new handle."""
    if isinstance(value, tl.tensor):
        return tl.tensor(copied(value.handle), value.type)
    if not isinstance(value, TensorHandle):
        return value
    handle = object.__new__(TensorHandle)
    handle.__dict__.update(value.__dict__)
    return handle


def check(dtype: Any, shape: tuple[int, ...], bits: bytes, handle: Any) -> tuple[()]:
    """Raise `Differs` if the handle's array is not this one."""
    data = handle.data
    if data.dtype != dtype or data.shape != shape or data.tobytes() != bits:
        raise Differs
    return ()
