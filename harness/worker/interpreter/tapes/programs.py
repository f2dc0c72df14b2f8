"""Runs the programs of a launch one after the other: the first in Python, the others by its tape if possible.

A tape also serves later launches with the same kernel, constants, sizes and globals that the kernel's text refers to.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from .tracing import GRID, PLACE, Operation, Resume, Trace

KEPT = 64
PATIENCE = 4
"""Programs that may go on in Python before a tape must serve at least half of the programs."""
_PLAIN = (int, float, bool, str, type(None), tl.dtype, tl.pointer_type)

_Step = tuple[int, Callable[..., Any], tuple[int, ...], int | tuple[int, ...]]

_tapes: OrderedDict[Any, OperationTape | None] = OrderedDict()
"""Tapes by key; `None`: the key was seen, but not traced yet."""


class NotPlain(Exception):
    """A value that may change without notice."""


class OperationTape:
    """Runs other programs of a launch by the operations of a traced program."""

    def __init__(self, trace: Trace, unused: Mapping[str, tuple[int, ...]]) -> None:
        """Sort a trace's operations into those that run once a launch and those that run in each program; drop the others.

        `unused`: positions of arguments by operation, of which only the shape matters. Values that no operation needs are
        freed.
        """
        self.operations = trace.operations
        self._inputs = trace.inputs
        self._values: list[Any] = trace.values
        inputs = [self._used(operation, unused) for operation in trace.operations]
        live: set[int] = set()
        kept: list[tuple[Operation, tuple[int, ...]]] = []
        for operation, places in zip(reversed(trace.operations), reversed(inputs), strict=True):
            if not operation.pure or not live.isdisjoint(operation.outputs):
                live.update(places)
                kept.append((operation, places))
        # Tier 0: constant. Tier 1: depends on pointers or the grid, once a launch. Tier 2: in each program.
        tiers = dict.fromkeys(trace.inputs, 1)
        self._once: list[_Step] = []
        self._steps: list[_Step] = []
        for operation, places in reversed(kept):
            name, outputs = operation.name, operation.outputs
            tier = max((tiers.get(at, 0) for at in places), default=0)
            if name == PLACE or (name and not operation.pure):
                tier = 2
            if name == GRID:
                tier = max(tier, 1)
            if tier == 0:
                continue
            tiers.update(dict.fromkeys(outputs, tier))
            step = operation.number, operation.call, places, outputs[0] if len(outputs) == 1 else outputs
            (self._once if tier == 1 else self._steps).append(step)
        used = {at for step in (*self._once, *self._steps) for at in step[2]}
        for at in range(len(self._values)):
            if at not in used or at in tiers:
                self._values[at] = None

    def _used(self, operation: Operation, unused: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Places of the inputs; an unused input becomes a constant, the traced program's value."""
        places = list(operation.inputs)
        for at in unused.get(operation.name, ()):
            self._values.append(self._values[places[at]])
            places[at] = len(self._values) - 1
        return tuple(places)

    def begin(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The values to run a launch's programs with; `None` if they must run in Python: it would read other bits."""
        values = list(self._values)
        for at, handle in zip(self._inputs, inputs, strict=True):
            values[at] = handle
        return values if _run(self._once, values) is None else None

    def run(self, values: list[Any]) -> int | None:
        """Run one program. Returns how many operations are done if the program must go on in Python."""
        return _run(self._steps, values)


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
        """`several`: the launch has more than one program; `unused`: see `OperationTape`."""
        self._function = function
        self._arguments = arguments
        self._unused = unused or {}
        self._inputs: list[Any] = []
        self._tape: OperationTape | None = None
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
        """Run the program at a position of the grid: by the tape if there is one, else in Python.

        If the tape does not fit, the program goes on in Python. Raises what the kernel raises.
        """
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

    def _resume(self, tape: OperationTape, values: list[Any], done: int) -> None:
        self._resumed += 1
        if self._resumed > PATIENCE and 2 * self._resumed > self._ran:
            self._values = None
        Resume(tape.operations, values, done).run(self._function, self._arguments)

    def _trace(self) -> None:
        """Run a program in Python and record its operations; the tape serves the next programs if the record is complete."""
        trace = Trace(self._inputs, _handles(self._arguments.values()))
        trace.run(self._function, self._arguments)
        if trace.whole:
            tape = OperationTape(trace, self._unused)
            self._remember(tape)
            self._take(tape)

    def _take(self, tape: OperationTape | None) -> None:
        if tape is not None:
            self._tape, self._values = tape, tape.begin(self._inputs)

    def _remember(self, tape: OperationTape | None) -> None:
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
    """Return the position of the program to run in the place of `position`. Over all positions, each program comes once.

    `order`: 1 runs the last program first, any other number gives a shuffled order.
    """
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
    """Return what identifies a function: itself, with the current values of the globals and closures that its text refers to.

    `seen` has the functions that are identified already, by `id`, and gets this one. Raises `NotPlain`, see `_global`.
    """
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
    """Return what identifies the value of a global that a kernel reads, so that an equal result means an equal kernel.

    Raises `NotPlain` for a value that may change without notice.
    """
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
    """Yield all of the interpreter's handles in arguments, also those inside tuples, tensors and descriptors."""
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


def _run(steps: Sequence[_Step], values: list[Any]) -> int | None:
    """Run the steps of a tape on its values, in place. Returns `None`, or the number of the step that raised.

    The exception itself is dropped: the program is run again in Python, where the kernel's own line raises it.
    """
    number = 0
    try:
        for number, call, places, output in steps:  # noqa: B007 (returned after an exception)
            result = call(*[values[at] for at in places])
            if isinstance(output, int):
                values[output] = result
            elif output:
                for at, value in zip(output, result, strict=True):
                    values[at] = value
    except Exception:  # noqa: BLE001 (raised again in Python, where its traceback is the kernel's)
        return number
    return None
