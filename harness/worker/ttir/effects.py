"""Operations that hold no others: of values alone, on memory, and of a program's place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.worker.interpreter import libdevice

from . import arithmetic
from .endings import Unread, Wrong
from .kinds import kind_of
from .memory import Memory
from .text import Operation

if TYPE_CHECKING:
    from .machine import Machine

Array = Any
Values = list[Array]
Step = Callable[["Machine", Values], None]
"""Puts an operation's results among the values."""
ADDRESSES = {"tt.ptr_to_int": Memory.number, "tt.int_to_ptr": Memory.place}
"""Between pointers and numbers."""


def plain(operation: Operation, function: Callable[..., Any]) -> Step:
    """Of values alone."""
    operands = tuple(operation.operands)
    if len(operation.results) == 1:
        (result,) = operation.results
        if len(operands) == 2:
            first, second = operands

            def two(_: Machine, values: Values) -> None:
                values[result] = function(values[first], values[second])

            return two

        def run(_: Machine, values: Values) -> None:
            values[result] = function(*[values[one] for one in operands])

        return run
    results = tuple(operation.results)

    def several(_: Machine, values: Values) -> None:
        for number, value in zip(results, function(*[values[one] for one in operands]), strict=True):
            values[number] = value

    return several


def numbering(operation: Operation, function: Callable[..., Array]) -> Step:
    """New floats; those that are no numbers have a device's bits."""
    operands, (result,) = tuple(operation.operands), operation.results

    def run(machine: Machine, values: Values) -> None:
        found = function(*[values[one] for one in operands])
        values[result] = arithmetic.device_nan(found, is_cuda=machine.memory.is_cuda)

    return run


def effect(operation: Operation, function: Callable[..., tuple[Array, ...]]) -> Step:
    """Of the machine and the operands, with as many results as the operation has."""
    operands, results = tuple(operation.operands), tuple(operation.results)

    def run(machine: Machine, values: Values) -> None:
        found = function(machine, *[values[one] for one in operands])
        for number, value in zip(results, found, strict=True):
            values[number] = value

    return run


def _assert(operation: Operation) -> Step:
    """A lane of which it is false ends the launch."""
    message = operation.attributes.get("message", "").strip('"')
    told = "what tl.device_assert or a check of `debug` asks for is false" + (message and f": {message}")

    def check(_: Machine, condition: Array) -> tuple[()]:
        if not np.all(condition):
            raise Wrong(told, operation.line)
        return ()

    return effect(operation, check)


def _program_id(operation: Operation) -> Step:
    axis = operation.number("axis")
    return effect(operation, lambda machine: (machine.place[axis],))


def _num_programs(operation: Operation) -> Step:
    axis = operation.number("axis")
    return effect(operation, lambda machine: (np.int32(machine.grid[axis]),))


def _addptr(operation: Operation) -> Step:
    pointee = kind_of(operation.operand_kinds[0]).pointee
    assert pointee is not None
    size = np.int64(pointee.itemsize)
    return plain(operation, lambda at, offset: at + np.asarray(offset).astype(np.int64) * size)


def address(operation: Operation, function: Callable[[Array], Array]) -> Step:
    """A pointer becomes a number, or the reverse: where memory lies is another matter on each device."""
    change = ADDRESSES[operation.name]
    return effect(operation, lambda machine, value: (change(machine.memory, function(value)),))


def _load(operation: Operation) -> Step:
    dtype = kind_of(operation.result_kinds[0]).dtype
    kind_of(operation.operand_kinds[0])
    sizes = operation.numbers("operandSegmentSizes")

    def load(machine: Machine, at: Array, *rest: Array) -> tuple[Array]:
        mask = rest[0] if sizes[1] else None
        other = rest[sizes[1]] if sizes[2] else None
        return (machine.memory.load(at, dtype, mask, other),)

    return effect(operation, load)


def _store(operation: Operation) -> Step:
    kind_of(operation.operand_kinds[0])

    def store(machine: Machine, at: Array, values: Array, mask: Array | None = None) -> tuple[()]:
        machine.memory.store(at, values, mask)
        return ()

    return effect(operation, store)


def _atomic(operation: Operation) -> Step:
    number = operation.number("atomic_rmw_op")

    def change(machine: Machine, at: Array, values: Array, mask: Array | None = None) -> tuple[Array]:
        return (machine.memory.change(number, at, values, mask),)

    return effect(operation, change)


def _swap(operation: Operation) -> Step:
    return effect(operation, lambda machine, at, expected, value: (machine.memory.swap(at, expected, value),))


def _dot(operation: Operation) -> Step:
    wanted = kind_of(operation.result_kinds[0]).dtype
    inner = np.float64 if wanted == np.float64 else np.float32 if wanted.kind not in "iu" else np.int32

    def dot(a: Array, b: Array, c: Array) -> Array:
        product = np.matmul(a.astype(inner), b.astype(inner))
        return (product + c.astype(inner)).astype(wanted)

    return plain(operation, dot)


def _extern(operation: Operation) -> Step:
    """A function of the device's own library."""
    symbol = operation.attributes["symbol"].strip('"')
    function = libdevice.function_of(symbol)
    if function is None:
        raise Unread(symbol)
    wanted = kind_of(operation.result_kinds[0]).dtype
    compute = function

    def run(*given: Array) -> Array:
        return np.asarray(compute(*given)).astype(wanted)

    return plain(operation, run)


def _poison(operation: Operation) -> Step:
    kind = kind_of(operation.result_kinds[0])
    value = np.zeros(kind.shape, dtype=kind.dtype)
    return plain(operation, lambda: value)


EFFECTS: dict[str, Callable[[Operation], Step]] = {
    "tt.get_program_id": _program_id,
    "tt.get_num_programs": _num_programs,
    "tt.addptr": _addptr,
    "tt.assert": _assert,
    "tt.load": _load,
    "tt.store": _store,
    "tt.atomic_rmw": _atomic,
    "tt.atomic_cas": _swap,
    "tt.dot": _dot,
    "tt.extern_elementwise": _extern,
    "ub.poison": _poison,
}
