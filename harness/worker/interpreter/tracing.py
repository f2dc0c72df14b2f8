"""
What one program of a launch did, written down as operations on arrays, to run the other programs without their Python.

Triton's interpreter works out types, shapes and constants anew for every operation of every program, which takes many times as
long as numpy does. A kernel's Python is the same for all programs of a launch, and sees values only by reading them out of a
handle. So the first program is traced: what the builder is asked for are the operations, and whatever else reads a handle is
written down as a *reading*. Another program runs the operations alone, each with the very method that the interpreter would
have called: all accesses, atomics, assertions and counts happen as ever. Operations that depend on constants alone are not run
again, those on pointers once a launch. Where a reading gives other bits, or an operation raises, the program goes on in Python
from that place: it is run from its start with what its operations already gave, and then as ever.

Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from .candidate_lines import UNKNOWN, candidate_line
from .lowering import lowered, numpy_function
from .program_operation import PLACE, Operation
from .shaping import (
    HANDLES,
    Untraceable,
    at_line,
    check,
    copied,
    flattened,
    handles_of,
    holds,
    keyworded,
    listed,
    on_copies,
    shown,
    tensor_of,
    tupled,
)

LONGEST = 1 << 14
"""Operations of a program beyond which it is not written down."""
MOST_BYTES = 64 << 20
"""Of all values of a program, which a tape keeps until the next program: likewise."""
_NAMES = """
get_num_programs bitcast ptr_to_int fp_to_fp si_to_fp ui_to_fp fp_to_si fp_to_ui fp_ext fp_trunc int_cast idiv sdiv udiv ashr
srem urem shl lshr umulhi clampf select fma fabs erf extern_elementwise rsqrt reshape trans make_range histogram gather addptr
expand_dims broadcast cat join split splat unsplat make_block_ptr advance
"""
_PURE = frozenset(f"create_{name}" for name in _NAMES.split())
"""Builder methods that do nothing but give a value, beside constants and those of one numpy function."""


def _is_pure(name: str) -> bool:
    return name in _PURE or name.startswith("get_") or numpy_function(name) is not None


class _Asked:
    """Stands in the builder's place while a program's Python runs: each call passes `perform`."""

    perform: Callable[..., Any]
    """`perform(name, method, args, named, *, pure, changes)` gives what `method` gives."""

    def __init__(self) -> None:
        self.inside = False
        """An operation runs: what it asks for and reads is its own."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(interpreter.interpreter_builder, name)
        if not callable(found) or name.endswith("_ty"):
            return found

        def asked(*args: Any, **named: Any) -> Any:
            if self.inside:
                return found(*args, **named)
            return self.perform(name, found, args, named, pure=_is_pure(name), changes=False)

        setattr(self, name, asked)
        return asked

    def _do(self, method: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        self.inside = True
        try:
            return method(*args, **named)
        finally:
            self.inside = False


_asked: list[_Asked] = []
"""The one that stands in the builder's place now; none while no program is traced."""


def operation(
    name: str, function: Callable[..., Any], *, pure: bool = False, changes: bool = False
) -> Callable[..., Any]:
    """`function` of tensors as an operation: its own reading of handles is none of the kernel's.

    A `pure` one does nothing else but give a value; one that `changes` the handles it is given may be done twice.
    """

    @functools.wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        asked = _asked[-1] if _asked else None
        if asked is None or asked.inside or not any(map(holds, (*args, *named.values()))):
            return function(*args, **named)
        return asked.perform(name, function, args, named, pure=pure, changes=changes)

    return run


def install() -> None:
    """Once a process: reductions and scans are operations."""
    for owner in (interpreter.ReduceOps, interpreter.ScanOps):
        owner.apply = operation(owner.__name__, owner.apply)


class Trace(_Asked):
    """Writes down one program."""

    def __init__(self, inputs: Iterable[Any], constants: Iterable[Any]) -> None:
        """`inputs` are handles that another launch may give in their place, `constants` those that it may not."""
        super().__init__()
        self.values: list[Any] = []
        self.operations: list[Operation] = []
        self.count = 0
        self.whole = False
        """The program came to its end and all of it is written down."""
        self._broken = False
        self._size_bytes = 0
        self._places: dict[int, int] = {}
        self._outside: dict[int, Any] = {id(one): one for one in constants}
        """Handles that are known to be the same for every program that reads the same."""
        self.inputs = tuple(self._place_of_new(one) for one in inputs)

    def run(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        """Runs the program."""
        traced = self

        def read(handle: Any) -> Any:
            data = handle.__dict__["data"]
            if not traced.inside:
                traced._read(handle, data)
            return data

        def write(handle: Any, data: Any) -> None:
            if not traced.inside:
                traced._written(handle)
            handle.__dict__["data"] = data

        semantic = interpreter.interpreter_semantic
        TensorHandle.data = property(read, write)
        semantic.builder = self
        _asked.append(self)
        try:
            function(**arguments)
            self.whole = not self._broken
        finally:
            _asked.pop()
            semantic.builder = interpreter.interpreter_builder
            del TensorHandle.data

    def perform(
        self,
        name: str,
        method: Callable[..., Any],
        args: Sequence[Any],
        named: Mapping[str, Any],
        *,
        pure: bool,
        changes: bool,
    ) -> Any:
        """See `_Asked`."""
        if self._broken:
            self.values, self.operations, self._places = [], [], {}
            return self._do(method, args, named)
        try:
            if changes:
                for one in handles_of([one for one in args if holds(one)]):
                    self.values[self._place(one)] = copied(one)
            inputs = tuple(self._place(one) for one in (*args, *named.values()))
        except Untraceable:
            self._broken = True
            return self._do(method, args, named)
        call = keyworded(method, len(args), tuple(named)) if named else method
        if changes:
            call = on_copies(call)
        pure = pure or name == PLACE
        result = self._do(method, args, named)
        line = UNKNOWN if pure else candidate_line()
        shorter = self._do(lowered, (name, args, result), {}) if not (named or changes) else None
        try:
            outputs = tuple(self._place_of_new(one) for one in handles_of(result))
        except Untraceable:
            self._broken = True
            return result
        if shorter is not None:
            call = shorter
        else:
            if not isinstance(result, TensorHandle):
                call = flattened(call)
            if not pure:
                call = at_line(call, line)
        self.operations.append(
            Operation(name, self.count, call, inputs, outputs, pure, pure or changes, shown(result), line)
        )
        self.count += 1
        self._broken = len(self.operations) > LONGEST or self._size_bytes > MOST_BYTES
        return result

    def _place_of_new(self, value: Any) -> int:
        self.values.append(value)
        if isinstance(value, TensorHandle):
            self._size_bytes += value.__dict__["data"].nbytes
        self._places[id(value)] = len(self.values) - 1
        return len(self.values) - 1

    def _place(self, value: Any) -> int:
        """Of an argument's value; lists and tensors are put together anew for each program."""
        if isinstance(value, HANDLES):
            known = self._places.get(id(value))
            if known is not None:
                return known
            if id(value) not in self._outside:
                raise Untraceable
            return self._place_of_new(value)
        if isinstance(value, tl.tensor):
            return self._put_together(functools.partial(tensor_of, value.type), (self._place(value.handle),))
        if type(value) in (list, tuple) and holds(value):
            kind = listed if type(value) is list else tupled
            return self._put_together(kind, tuple(self._place(one) for one in value))
        self.values.append(value)
        return len(self.values) - 1

    def _put_together(self, call: Callable[..., Any], inputs: tuple[int, ...]) -> int:
        self.values.append(call(*(self.values[at] for at in inputs)))
        place = len(self.values) - 1
        self.operations.append(
            Operation("", self.count, call, inputs, (place,), pure=True, repeated=True, shown=tuple)
        )
        return place

    def _read(self, handle: Any, data: Any) -> None:
        """Python reads a value: another program goes the same way where it reads the same."""
        place = self._places.get(id(handle))
        if place is None:
            self._broken = self._broken or id(handle) not in self._outside
            return
        same = functools.partial(check, data.dtype, data.shape, data.tobytes())
        self.operations.append(
            Operation("", self.count, same, (place,), (), pure=False, repeated=True, shown=tuple)
        )

    def _written(self, handle: Any) -> None:
        """A handle made of what Python read is as good as a constant; one that is changed is not."""
        self._broken = self._broken or "data" in handle.__dict__
        if not self._broken:
            self._outside[id(handle)] = handle


class Resume(_Asked):
    """Runs a program in Python whose first operations are done."""

    def __init__(self, operations: Sequence[Operation], values: Sequence[Any], done: int) -> None:
        super().__init__()
        self._operations = [one for one in operations if one.name][:done]
        self._values = values
        self._at = 0

    def run(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        """Runs it to its end."""
        semantic = interpreter.interpreter_semantic
        semantic.builder = self
        _asked.append(self)
        try:
            function(**arguments)
        finally:
            _asked.pop()
            semantic.builder = interpreter.interpreter_builder

    def perform(
        self,
        name: str,
        method: Callable[..., Any],
        args: Sequence[Any],
        named: Mapping[str, Any],
        *,
        pure: bool,
        changes: bool,
    ) -> Any:
        """See `_Asked`."""
        if self._at >= len(self._operations):
            return self._do(method, args, named)
        done = self._operations[self._at]
        self._at += 1
        if done.name != name:
            raise RuntimeError(
                f"a kernel's Python asks for `{name}` where a program before asked for `{done.name}`"
            )
        if done.repeated:
            return self._do(method, args, named)
        return done.shown([self._values[at] for at in done.outputs])
