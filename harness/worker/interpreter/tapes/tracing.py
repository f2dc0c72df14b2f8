"""Records what the first program of a launch does as operations on arrays, to run the other programs without their Python.

Triton's interpreter computes types, shapes and constants anew for every operation of every program, which takes many times
as long as numpy's work. But a kernel's Python is the same for all programs of a launch, and it sees values only by reading
them out of a handle. So the first program is traced: each call of the builder becomes an operation, and each read of a
handle becomes a check of its bits.

Another program runs only the operations, each with the method that the interpreter would call: all accesses, atomics,
assertions and counts happen as usual. Operations on constants do not run again; operations on pointers run once a launch.
If a check finds other bits or an operation raises, the program goes on in Python: it starts again, gets the results of the
operations that are done, and then runs as usual.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from harness.worker.interpreter.candidate_lines import UNKNOWN, candidate_line
from harness.worker.interpreter.tapes import operations as ops

from .operations import PLACE, Operation, Untraceable, copied, handles_of, holds

LONGEST = 1 << 14
"""Most operations of a program that is recorded."""
MOST_BYTES = 64 << 20
"""Most bytes of all values of a program that is recorded; a tape keeps them until the next program."""
_NAMES = """
get_num_programs bitcast ptr_to_int fp_to_fp si_to_fp ui_to_fp fp_to_si fp_to_ui fp_ext fp_trunc int_cast idiv sdiv udiv ashr
srem urem shl lshr umulhi clampf select fma fabs erf extern_elementwise rsqrt reshape trans make_range histogram gather addptr
expand_dims broadcast cat join split splat unsplat make_block_ptr advance
"""
_PURE = frozenset(f"create_{name}" for name in _NAMES.split())
"""Builder methods without effects, beside constants and element-wise methods."""
_ELEMENTWISE = frozenset({"unary_op", "binary_op", "ternary_op"})
"""A builder's method that calls one of them passes a numpy function to it and does nothing else."""


class Call(NamedTuple):
    """One call by a kernel's Python."""

    name: str
    method: Callable[..., Any]
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    pure: bool = False
    """It has no effect but its result."""
    changes: bool = False
    """It changes its handles, but may run twice."""


class _Proxy:
    """Replaces the builder while a program's Python runs: each call passes `perform`."""

    def __init__(self) -> None:
        self.inside = False
        """An operation runs: its own calls and reads are not recorded."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(interpreter.interpreter_builder, name)
        if not callable(method) or name.endswith("_ty"):
            return method
        pure = _is_pure(name)

        def call(*args: Any, **named: Any) -> Any:
            if self.inside:
                return method(*args, **named)
            return self.perform(Call(name, method, args, named, pure))

        setattr(self, name, call)
        return call

    def run(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        """Run the program."""
        semantic = interpreter.interpreter_semantic
        semantic.builder = self
        _proxies.append(self)
        try:
            function(**arguments)
        finally:
            _proxies.pop()
            semantic.builder = interpreter.interpreter_builder

    def perform(self, call: Call) -> Any:
        """The call's result for Python."""
        raise NotImplementedError

    def _do(self, method: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        self.inside = True
        try:
            return method(*args, **named)
        finally:
            self.inside = False


_proxies: list[_Proxy] = []
"""The proxy that replaces the builder now; empty while no program is traced."""


def _is_pure(name: str) -> bool:
    if name in _PURE or name.startswith("get_"):
        return True
    code = getattr(getattr(interpreter.InterpreterBuilder, name, None), "__code__", None)
    return code is not None and not _ELEMENTWISE.isdisjoint(code.co_names)


def operation(
    name: str, function: Callable[..., Any], *, pure: bool = False, changes: bool = False
) -> Callable[..., Any]:
    """Make a function of tensors an operation: its own reads of handles do not count as the kernel's. See `Call`."""

    @functools.wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        proxy = _proxies[-1] if _proxies else None
        if proxy is None or proxy.inside or not any(map(holds, (*args, *named.values()))):
            return function(*args, **named)
        return proxy.perform(Call(name, function, args, named, pure, changes))

    return run


def install() -> None:
    """Once a process: make reductions and scans operations."""
    for owner in (interpreter.ReduceOps, interpreter.ScanOps):
        owner.apply = operation(owner.__name__, owner.apply, pure=True)


class Trace(_Proxy):
    """Records one program."""

    def __init__(self, inputs: Iterable[Any], constants: Iterable[Any]) -> None:
        """`inputs`: handles that differ in other launches. `constants`: handles that are the same in each."""
        super().__init__()
        self.values: list[Any] = []
        self.operations: list[Operation] = []
        self.count = 0
        self.whole = False
        """The program has ended and is recorded completely."""
        self._broken = False
        self._size_bytes = 0
        self._places: dict[int, int] = {}
        self._outside: dict[int, Any] = {id(handle): handle for handle in constants}
        """Handles that are the same for every program that passes the same checks."""
        self.inputs = tuple(self._add(handle) for handle in inputs)

    def run(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        """Run and record the program."""

        def read(handle: Any) -> Any:
            data = handle.__dict__["data"]
            if not self.inside:
                self._read(handle, data)
            return data

        def write(handle: Any, data: Any) -> None:
            if not self.inside:
                self._written(handle)
            handle.__dict__["data"] = data

        TensorHandle.data = property(read, write)
        try:
            super().run(function, arguments)
            self.whole = not self._broken
        finally:
            del TensorHandle.data

    def perform(self, call: Call) -> Any:
        """Run and record the call."""
        name, method, args, named, pure, changes = call
        if self._broken:
            self.values, self.operations, self._places = [], [], {}
            return self._do(method, *args, **named)
        try:
            if changes:
                for handle in handles_of([arg for arg in args if holds(arg)]):
                    self.values[self._place(handle)] = copied(handle)
            inputs = tuple(self._place(arg) for arg in (*args, *named.values()))
        except Untraceable:
            self._broken = True
            return self._do(method, *args, **named)
        pure = pure or name == PLACE
        result = self._do(method, *args, **named)
        line = UNKNOWN if pure else candidate_line()
        try:
            outputs = tuple(self._add(handle) for handle in handles_of(result))
        except Untraceable:
            self._broken = True
            return result
        again = _again(call, result, None if pure else line)
        self.operations.append(
            Operation(
                name, self.count, again, inputs, outputs, pure, pure or changes, ops.shown(result), line
            )
        )
        self.count += 1
        self._broken = len(self.operations) > LONGEST or self._size_bytes > MOST_BYTES
        return result

    def _add(self, value: Any) -> int:
        """Place of a new handle."""
        self.values.append(value)
        if isinstance(value, TensorHandle):
            self._size_bytes += value.__dict__["data"].nbytes
        self._places[id(value)] = len(self.values) - 1
        return len(self.values) - 1

    def _place(self, value: Any) -> int:
        """Place of an argument; lists and tensors are made anew for each program."""
        if isinstance(value, ops.HANDLES):
            place = self._places.get(id(value))
            if place is not None:
                return place
            if id(value) not in self._outside:
                raise Untraceable
            return self._add(value)
        if isinstance(value, tl.tensor):
            kind = value.type
            return self._put_together(lambda handle: tl.tensor(handle, kind), (value.handle,))
        if type(value) in (list, tuple) and holds(value):
            sequence = type(value)
            return self._put_together(lambda *parts: sequence(parts), value)
        self.values.append(value)
        return len(self.values) - 1

    def _put_together(self, call: Callable[..., Any], parts: Sequence[Any]) -> int:
        inputs = tuple(self._place(part) for part in parts)
        self.values.append(call(*(self.values[at] for at in inputs)))
        place = len(self.values) - 1
        self._add_unnamed(call, inputs, (place,), pure=True)
        return place

    def _add_unnamed(
        self, call: Callable[..., Any], inputs: tuple[int, ...], outputs: tuple[int, ...], *, pure: bool
    ) -> None:
        self.operations.append(
            Operation("", self.count, call, inputs, outputs, pure=pure, repeated=True, shown=tuple)
        )

    def _read(self, handle: Any, data: Any) -> None:
        """Record that Python reads a value: another program runs the same Python if it reads the same bits."""
        place = self._places.get(id(handle))
        if place is None:
            self._broken = self._broken or id(handle) not in self._outside
            return
        check = functools.partial(ops.check, data.dtype, data.shape, data.tobytes())
        self._add_unnamed(check, (place,), (), pure=False)

    def _written(self, handle: Any) -> None:
        """A new handle is made of bits that Python read, so it counts as a constant. A changed handle cannot be recorded."""
        self._broken = self._broken or "data" in handle.__dict__
        if not self._broken:
            self._outside[id(handle)] = handle


def _again(call: Call, result: Any, line: Any) -> Callable[..., Any]:
    """The call on positional handles; `line`: the candidate's line, for calls with effects."""
    again = call.method
    if call.named:
        again = ops.keyworded(again, len(call.args), tuple(call.named))
    if call.changes:
        again = ops.on_copies(again)
    if not isinstance(result, TensorHandle):
        again = ops.flattened(again)
    return again if line is None else ops.at_line(again, line)


class Resume(_Proxy):
    """Goes on in Python with a program after its first operations are done."""

    def __init__(self, operations: Sequence[Operation], values: Sequence[Any], done: int) -> None:
        super().__init__()
        self._operations = [operation for operation in operations if operation.name][:done]
        self._values = values
        self._at = 0

    def perform(self, call: Call) -> Any:
        """The result of an operation that is done, or else of the call."""
        if self._at >= len(self._operations):
            return self._do(call.method, *call.args, **call.named)
        done = self._operations[self._at]
        self._at += 1
        if done.name != call.name:
            raise RuntimeError(
                f"a kernel's Python calls `{call.name}` where an earlier program called `{done.name}`"
            )
        if done.repeated:
            return self._do(call.method, *call.args, **call.named)
        return done.shown([self._values[at] for at in done.outputs])
