"""Runs the programs of a launch one after the other: the first in Python, the others by its tape if possible.

A tape also serves later launches with the same kernel, constants, sizes and globals that the kernel's text refers to.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from . import program_tape, tracing

KEPT = 64
PATIENCE = 4
"""Programs that may go on in Python before a tape must serve at least half of the programs."""
_PLAIN = (int, float, bool, str, type(None), tl.dtype, tl.pointer_type)

_tapes: OrderedDict[Any, program_tape.Tape | None] = OrderedDict()
"""Tapes by key; `None`: the key was seen, but not traced yet."""


class NotPlain(Exception):
    """A value that may change without notice."""


class Programs:
    """Runs the programs of one launch."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Mapping[str, Any],
        *,
        several: bool,
        unused: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        """`several`: the launch has more than one program; `unused`: see `Tape`."""
        self._function = function
        self._arguments = arguments
        self._unused = unused or {}
        self._inputs: list[Any] = []
        self._tape: program_tape.Tape | None = None
        self._values: list[Any] | None = None
        self._ran = self._resumed = 0
        try:
            self._key: Any = _functions(function, {}), _signature(tuple(arguments.items()), self._inputs)
        except NotPlain:
            self._key, self._inputs = None, []
        seen = self._key is not None and self._key in _tapes
        self._traces = several or seen
        if seen:
            _tapes.move_to_end(self._key)
            self._take(_tapes[self._key])

    def run(self, position: tuple[int, int, int]) -> None:
        """Run the program at a position of the grid."""
        begin_program(position)
        if self._values is not None:
            assert self._tape is not None
            self._ran += 1
            done = self._tape.run(self._values)
            if done is not None:
                self._resume(self._tape, self._values, done)
        elif self._traces:
            self._traces = False
            self._trace()
        else:
            self._remember(None)
            self._function(**self._arguments)

    def _resume(self, tape: program_tape.Tape, values: list[Any], done: int) -> None:
        self._resumed += 1
        if self._resumed > PATIENCE and 2 * self._resumed > self._ran:
            self._values = None
        tracing.Resume(tape.operations, values, done).run(self._function, self._arguments)

    def _trace(self) -> None:
        trace = tracing.Trace(self._inputs, _handles(self._arguments.values()))
        trace.run(self._function, self._arguments)
        if trace.whole:
            tape = program_tape.Tape(trace, self._unused)
            self._remember(tape)
            self._take(tape)

    def _take(self, tape: program_tape.Tape | None) -> None:
        if tape is not None:
            self._tape, self._values = tape, tape.begin(self._inputs)

    def _remember(self, tape: program_tape.Tape | None) -> None:
        if self._key is not None:
            _tapes[self._key] = tape
            while len(_tapes) > KEPT:
                _tapes.popitem(last=False)


def begin_program(position: tuple[int, int, int]) -> None:
    """Begin the program at a position of the grid, or at the position that the observation's order has in its place."""
    builder = interpreter.interpreter_builder
    if builder.observation.order:
        position = _reordered(position, builder.grid_dim, builder.observation.order)
    builder.observation.begin_program(position)
    builder.set_grid_idx(*position)


def _reordered(
    position: tuple[int, int, int], grid: tuple[int, int, int], order: int
) -> tuple[int, int, int]:
    x, y, z = position
    count, place = math.prod(grid), x + grid[0] * (y + grid[1] * z)
    step = next(step for step in range(1 + order % count, 2 * count + 2) if math.gcd(step, count) == 1)
    place = count - 1 - place if order == 1 else (order + step * place) % count
    return place % grid[0], place // grid[0] % grid[1], place // (grid[0] * grid[1])


def _signature(value: Any, inputs: list[Any]) -> Any:
    """Everything in an argument that a tape depends on. Pointers go to `inputs`. `NotPlain` for unknown types."""
    if isinstance(value, tl.tensor) and isinstance(value.handle, TensorHandle):
        dtype = value.handle.dtype
        if isinstance(dtype, tl.pointer_type):
            inputs.append(value.handle)
            return "pointer", str(dtype)
        return str(dtype), value.handle.data.tobytes()
    if type(value) is tl.constexpr:
        return "constexpr", _signature(value.value, inputs)
    if type(value) in (tuple, tl.tuple):
        return type(value), tuple(_signature(part, inputs) for part in value)
    if type(value) in _PLAIN:
        return type(value), repr(value)
    raise NotPlain


def _functions(function: Any, seen: dict[int, Any]) -> Any:
    """A function with the current values of all globals and closures that its text refers to."""
    if id(function) in seen:
        return id(function)
    seen[id(function)] = function
    if not isinstance(function, FunctionType):
        raise NotPlain
    space = function.__globals__
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = [(name, space[name]) for name in _names(function.__code__) if name in space]
    try:
        values += [(name, cell.cell_contents) for name, cell in cells]
    except ValueError as empty:
        raise NotPlain from empty
    return function, tuple((name, _global(value, seen)) for name, value in values)


def _global(value: Any, seen: dict[int, Any]) -> Any:
    if type(value) is tl.constexpr:
        return "constexpr", _global(value.value, seen)
    if type(value) in _PLAIN:
        return type(value), repr(value)
    if isinstance(value, interpreter.InterpretedFunction):
        return _functions(value.fn, seen)
    name = value.__name__ if isinstance(value, ModuleType) else ""
    home = (getattr(value, "__module__", None) or "") if callable(value) else ""
    if name.split(".")[0] in ("triton", "math") or home.split(".")[0] in ("triton", "builtins"):
        return value
    if value is interpreter.interpreter_semantic:
        return value
    raise NotPlain


def _names(code: CodeType) -> Iterable[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _handles(values: Iterable[Any]) -> Iterable[Any]:
    """All handles in arguments, including those in descriptors."""
    for value in values:
        if isinstance(value, TensorHandle):
            yield value
        elif isinstance(value, (tuple, list, tl.tuple)):
            yield from _handles(value)
        elif isinstance(value, (tl.tensor, tl.core.base_value)):
            yield from _handles(vars(value).values())
        elif type(value).__module__ == "triton.runtime.interpreter":
            yield value
            yield from _handles(vars(value).values())
