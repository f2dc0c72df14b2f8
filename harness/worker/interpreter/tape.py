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
from typing import Any, NamedTuple

import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import BlockPointerHandle, TensorDescHandle, TensorHandle

from . import traffic
from .lowering import lowered, numpy_function

LONGEST = 1 << 14
"""Operations of a program beyond which it is not written down."""
_HANDLES = (TensorHandle, BlockPointerHandle, TensorDescHandle)
_PLACE = "create_get_program_id"
_PURE = frozenset(
    {
        *(
            "create_get_num_programs",
            "create_bitcast",
            "create_int_to_ptr",
            "create_ptr_to_int",
            "create_fp_to_fp",
        ),
        *("create_si_to_fp", "create_ui_to_fp", "create_fp_to_si", "create_fp_to_ui", "create_fp_ext"),
        *("create_fp_trunc", "create_int_cast", "create_idiv", "create_sdiv", "create_udiv", "create_ashr"),
        *("create_umulhi", "create_clampf", "create_select", "create_fma", "create_fabs", "create_erf"),
        *("create_rsqrt", "create_reshape", "create_trans", "create_make_range", "create_histogram"),
        *(
            "create_gather",
            "create_addptr",
            "create_expand_dims",
            "create_broadcast",
            "create_cat",
            "create_join",
        ),
        *("create_split", "create_splat", "create_unsplat", "create_make_block_ptr", "create_advance"),
    }
)
"""Builder methods that do nothing but give a value, beside constants and those of one numpy function."""


class Differs(Exception):
    """A program reads other bits than the one that was traced."""


class Untraceable(Exception):
    """What a kernel's Python does cannot be written down."""


class Operation(NamedTuple):
    """One of them, in the order in which they were asked for."""

    name: str
    number: int
    """How many that Python asks for came before."""
    call: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """Places of values."""
    pure: bool
    """It does nothing but give its outputs, the same ones for the same inputs."""
    repeated: bool
    """It may be done once more for a program that goes on in Python."""
    shown: Callable[..., Any]
    """What Python is given, of the outputs."""


def _is_pure(name: str) -> bool:
    return name in _PURE or name.startswith("get_") or numpy_function(name) is not None


class _Asked:
    """Stands in the builder's place while a program's Python runs: each call passes `perform`."""

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
        """What `method` gives."""
        raise NotImplementedError

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
        if asked is None or asked.inside or not any(map(_holds, (*args, *named.values()))):
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
            return self._do(method, args, named)
        try:
            if changes:
                for one in handles_of([one for one in args if _holds(one)]):
                    self.values[self._place(one)] = _copied(one)
            inputs = tuple(self._place(one) for one in (*args, *named.values()))
        except Untraceable:
            self._broken = True
            return self._do(method, args, named)
        call = _keyworded(method, len(args), tuple(named)) if named else method
        if changes:
            call = _on_copies(call)
        pure = pure or name == _PLACE
        result = self._do(method, args, named)
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
                call = _flattened(call)
            if not pure:
                call = _at_line(call, traffic.candidate_line())
        self.operations.append(
            Operation(name, self.count, call, inputs, outputs, pure, pure or changes, _shown(result))
        )
        self.count += 1
        self._broken = len(self.operations) > LONGEST
        return result

    def _place_of_new(self, value: Any) -> int:
        self.values.append(value)
        self._places[id(value)] = len(self.values) - 1
        return len(self.values) - 1

    def _place(self, value: Any) -> int:
        """Of an argument's value; lists and tensors are put together anew for each program."""
        if isinstance(value, _HANDLES):
            known = self._places.get(id(value))
            if known is not None:
                return known
            if id(value) not in self._outside:
                raise Untraceable
            return self._place_of_new(value)
        if isinstance(value, tl.tensor):
            return self._put_together(functools.partial(_tensor, value.type), (self._place(value.handle),))
        if type(value) in (list, tuple) and _holds(value):
            kind = _listed if type(value) is list else _tupled
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
        check = functools.partial(_check, data.dtype, data.shape, data.tobytes())
        self.operations.append(
            Operation("", self.count, check, (place,), (), pure=False, repeated=True, shown=tuple)
        )

    def _written(self, handle: Any) -> None:
        """A handle made of what Python read is as good as a constant; one that is changed is not."""
        if "data" in handle.__dict__:
            self._broken = True
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


class Tape:
    """The operations of a traced program, dealt out by what they depend on."""

    def __init__(
        self, trace: Trace, unused: Mapping[str, tuple[int, ...]], idle: frozenset[str] = frozenset()
    ) -> None:
        """`unused` are arguments of operations, by their place, that only their shape is asked of.

        `idle` are operations of which the value alone counts here.
        """
        self.operations = trace.operations
        self._inputs = trace.inputs
        self._values: list[Any] = trace.values
        inputs = [self._used(one, unused) for one in trace.operations]
        live: set[int] = set()
        kept: list[tuple[Operation, tuple[int, ...]]] = []
        for one, places in zip(reversed(trace.operations), reversed(inputs), strict=True):
            if not (one.pure or one.name in idle) or not live.isdisjoint(one.outputs):
                live.update(places)
                kept.append((one, places))
        tiers = dict.fromkeys(trace.inputs, 1)
        self._once: list[_Step] = []
        self._steps: list[_Step] = []
        for one, places in reversed(kept):
            tier = max((tiers.get(at, 0) for at in places), default=0)
            if one.name == _PLACE or (one.name and not one.pure and one.name not in idle):
                tier = 2
            if tier == 0:
                continue
            for at in one.outputs:
                tiers[at] = tier
            step = one.number, one.call, places, one.outputs[0] if len(one.outputs) == 1 else one.outputs
            (self._once if tier == 1 else self._steps).append(step)
        used = {at for step in (*self._once, *self._steps) for at in step[2]}
        for at in range(len(self._values)):
            if at not in used or at in tiers:
                self._values[at] = None

    def _used(self, one: Operation, unused: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Places of its inputs; a copy of what the traced program had where any will do."""
        places = list(one.inputs)
        for at in unused.get(one.name, ()):
            self._values.append(self._values[places[at]])
            places[at] = len(self._values) - 1
        return tuple(places)

    def begin(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The values to run a launch's programs with; `None` where Python reads something else in this launch."""
        values = list(self._values)
        for at, handle in zip(self._inputs, inputs, strict=True):
            values[at] = handle
        try:
            for _, call, places, output in self._once:
                _store(values, output, call(*[values[at] for at in places]))
        except Differs:
            return None
        return values

    def run(self, values: list[Any]) -> int | None:
        """Runs one program; where it must go on in Python, how many operations are done."""
        number = 0
        try:
            for number, call, places, output in self._steps:  # noqa: B007 (asked when one raises)
                result = call(*[values[at] for at in places])
                if type(output) is int:
                    values[output] = result
                elif output:
                    _store(values, output, result)
        except Exception:  # noqa: BLE001 (Python meets it again, where its traceback is the kernel's)
            return number
        return None


_Step = tuple[int, Callable[..., Any], tuple[int, ...], int | tuple[int, ...]]


def handles_of(result: Any) -> tuple[Any, ...]:
    """The handles in what an operation gives; `Untraceable` for anything else."""
    if isinstance(result, _HANDLES):
        return (result,)
    if isinstance(result, tl.tensor):
        return (result.handle,)
    if isinstance(result, (tuple, list)):
        return tuple(one for part in result for one in handles_of(part))
    if result is None:
        return ()
    raise Untraceable


def _holds(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_holds, value))
    return isinstance(value, (*_HANDLES, tl.tensor))


def _shown(result: Any) -> Callable[..., Any]:
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


def _store(values: list[Any], output: int | tuple[int, ...], result: Any) -> None:
    if isinstance(output, int):
        values[output] = result
        return
    for at, one in zip(output, result, strict=True):
        values[at] = one


def _flattened(call: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        handles = tuple(handles_of(call(*args)))
        return handles[0] if len(handles) == 1 else handles

    return run


def _keyworded(method: Callable[..., Any], count: int, names: tuple[str, ...]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        return method(*args[:count], **dict(zip(names, args[count:], strict=True)))

    return run


def _at_line(call: Callable[..., Any], line: tuple[str, int]) -> Callable[..., Any]:
    """Where the kernel's frame is not there to tell its line."""

    def run(*args: Any) -> Any:
        traffic.replayed.line = line
        try:
            return call(*args)
        finally:
            traffic.replayed.line = None

    return run


def _on_copies(call: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        return call(*(_copied(one) for one in args))

    return run


def _copied(value: Any) -> Any:
    """Another handle of the same array, or a tensor with one."""
    if isinstance(value, tl.tensor):
        return tl.tensor(_copied(value.handle), value.type)
    if not isinstance(value, TensorHandle):
        return value
    made = object.__new__(TensorHandle)
    made.__dict__.update(value.__dict__)
    return made


def _check(dtype: Any, shape: tuple[int, ...], bits: bytes, handle: Any) -> tuple[()]:
    data = handle.data
    if data.dtype != dtype or data.shape != shape or data.tobytes() != bits:
        raise Differs
    return ()


def _tensor(kind: Any, handle: Any) -> Any:
    return tl.tensor(handle, kind)


def _listed(*values: Any) -> list[Any]:
    return list(values)


def _tupled(*values: Any) -> tuple[Any, ...]:
    return values
