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
from triton.runtime.interpreter import BlockPointerHandle, TensorDescHandle, TensorHandle

from harness.worker.interpreter.places import Line, candidate_line, replayed

LONGEST = 1 << 14
"""Most operations of a program that is recorded."""
MOST_BYTES = 64 << 20
"""Most bytes of all values of a program that is recorded; a tape keeps them until the next program."""
HANDLES = (TensorHandle, BlockPointerHandle, TensorDescHandle)
PLACE = "create_get_program_id"
GRID = "create_get_num_programs"
_NAMES = """
get_num_programs bitcast ptr_to_int fp_to_fp si_to_fp ui_to_fp fp_to_si fp_to_ui fp_ext fp_trunc int_cast idiv sdiv udiv ashr
srem urem shl lshr umulhi clampf select fma fabs erf extern_elementwise rsqrt reshape trans make_range histogram gather addptr
expand_dims broadcast cat join split splat unsplat make_block_ptr advance combination
"""
_PURE = frozenset(f"create_{name}" for name in _NAMES.split())
"""Builder methods without effects, beside constants and element-wise methods."""
_ELEMENTWISE = frozenset({"unary_op", "binary_op", "ternary_op"})
"""A builder's method that calls one of them passes a numpy function to it and does nothing else."""


class Differs(Exception):
    """A program reads other bits than the traced program."""


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


class _Proxy:
    """Replaces the builder while a program's Python runs: each call passes `perform`."""

    def __init__(self) -> None:
        self.inside = False
        """An operation runs: its own calls and reads are not recorded."""

    def __getattr__(self, name: str) -> Any:
        """Return the builder's method of this name, with each call passed to `perform`, except calls from inside an operation.

        Attributes that are no methods, and makers of types, are the builder's own. The method is kept for the next time.
        """
        method = getattr(interpreter.interpreter_builder, name)
        if not callable(method) or name.endswith("_ty"):
            return method

        def call(*args: Any, **named: Any) -> Any:
            if self.inside:
                return method(*args, **named)
            return self.perform(name, method, args, named)

        setattr(self, name, call)
        return call

    def run(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        """Run the program."""
        semantic = interpreter.interpreter_semantic
        semantic.builder = self
        try:
            function(**arguments)
        finally:
            semantic.builder = interpreter.interpreter_builder

    def perform(self, name: str, method: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """The result of a builder's method for Python."""
        raise NotImplementedError

    def _do(self, method: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Run an operation of the builder; its own calls and reads are not recorded."""
        self.inside = True
        try:
            return method(*args, **named)
        finally:
            self.inside = False


@functools.cache
def _is_pure(name: str) -> bool:
    """Whether a builder's method has no effect but its result."""
    if name in _PURE or name.startswith("get_") or name == PLACE:
        return True
    code = getattr(getattr(type(interpreter.interpreter_builder), name, None), "__code__", None)
    return code is not None and not _ELEMENTWISE.isdisjoint(code.co_names)


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
        """Run the program's Python with these arguments and record it; `whole` is true if the record is complete.

        While it runs, each read and write of a handle's data in this process is noted. Raises what the program raises.
        """

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

    def perform(self, name: str, method: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Run a builder's method and record it as an operation; return its result.

        After the record broke, because an operation cannot be recorded or there are too many, the rest runs without a record.
        """
        if self._broken:
            self.values, self.operations, self._places = [], [], {}
            return self._do(method, args, named)
        inputs = tuple(map(self._place, (*args, *named.values())))
        result = self._do(method, args, named)
        handles = () if result is None else result if isinstance(result, tuple) else (result,)
        if not all(isinstance(handle, HANDLES) for handle in handles):
            self._broken = True
        if self._broken:
            return result
        outputs = tuple(map(self._add, handles))
        pure = _is_pure(name)
        again = _with_keywords(method, len(args), tuple(named)) if named else method
        again = again if pure else _at_line(again, candidate_line())
        self.operations.append(Operation(name, self.count, again, inputs, outputs, pure))
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
        """Place of an argument; lists of handles are made anew for each program."""
        place = self._places.get(id(value)) if isinstance(value, HANDLES) else None
        if place is not None:
            return place
        if isinstance(value, (*HANDLES, tl.tensor)):
            self._broken = self._broken or id(value) not in self._outside
            return self._add(value)
        inputs = tuple(map(self._place, value)) if _holds(value) else ()
        self.values.append(value)
        place = len(self.values) - 1
        if inputs:
            sequence = type(value)
            make = lambda *parts: sequence(parts)  # noqa: E731
            self.operations.append(Operation("", self.count, make, inputs, (place,), pure=True))
        return place

    def _read(self, handle: Any, data: Any) -> None:
        """Record that Python reads a value: another program runs the same Python if it reads the same bits."""
        place = self._places.get(id(handle))
        if place is None:
            self._broken = self._broken or id(handle) not in self._outside
            return
        check = functools.partial(_check, data.dtype, data.shape, data.tobytes())
        self.operations.append(Operation("", self.count, check, (place,), (), pure=False))

    def _written(self, handle: Any) -> None:
        """A new handle is made of bits that Python read, so it counts as a constant. A changed handle cannot be recorded."""
        self._broken = self._broken or "data" in handle.__dict__
        if not self._broken:
            self._outside[id(handle)] = handle


class Resume(_Proxy):
    """Goes on in Python with a program after its first operations are done."""

    def __init__(self, operations: Sequence[Operation], values: Sequence[Any], done: int) -> None:
        super().__init__()
        self._operations = [operation for operation in operations if operation.name][:done]
        self._values = values
        self._at = 0

    def perform(self, name: str, method: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """The result of an operation that is done, or else of the call. Operations without effects run again."""
        if self._at >= len(self._operations):
            return self._do(method, args, named)
        done = self._operations[self._at]
        self._at += 1
        if done.name != name:
            raise RuntimeError(
                f"a kernel's Python calls `{name}` where an earlier program called `{done.name}`"
            )
        if done.pure:
            return self._do(method, args, named)
        return self._values[done.outputs[0]] if done.outputs else None


def _holds(value: Any) -> bool:
    """Whether a value is a list or a tuple with handles or tensors."""
    return type(value) in (list, tuple) and any(
        isinstance(part, (*HANDLES, tl.tensor)) or _holds(part) for part in value
    )


def _with_keywords(method: Callable[..., Any], count: int, names: tuple[str, ...]) -> Callable[..., Any]:
    """The method, called with the first `count` arguments by position and the rest by name."""
    return lambda *args: method(*args[:count], **dict(zip(names, args[count:], strict=True)))


def _at_line(call: Callable[..., Any], line: Line) -> Callable[..., Any]:
    """The call at a line of the candidate, as the kernel's frame is not there to give its line."""

    def run(*args: Any) -> Any:
        replayed.line = line
        try:
            return call(*args)
        finally:
            replayed.line = None

    return run


def _check(dtype: Any, shape: tuple[int, ...], bits: bytes, handle: Any) -> None:
    """Raise `Differs` if the handle's array is not this one."""
    data = handle.data
    if data.dtype != dtype or data.shape != shape or data.tobytes() != bits:
        raise Differs
