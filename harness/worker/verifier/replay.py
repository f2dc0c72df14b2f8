"""
Runs a record again: allocations, fills, copies and launches, on inputs of the judge's and with kernels alone.

Nothing of the candidate's host code takes part, so outputs that are right here were computed by its kernels.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.tools.tensor_descriptor import TensorDescriptor

from harness.worker.guest import operators
from harness.worker.guest.record import digest, tensors
from harness.worker.interpreter import launches, tuning, whereabouts
from harness.worker.interpreter.past import INPUTS
from harness.worker.interpreter.traffic import Observation
from harness.worker.serving import poison
from harness.worker.serving.records import (
    Address,
    Constant,
    Constexpr,
    Contents,
    Descriptor,
    Dtype,
    Function,
    FunctionNotes,
    HostRead,
    Items,
    Language,
    Launch,
    Operator,
    Record,
    Reinterpreted,
    Table,
    Value,
    View,
    fits,
    trials,
)
from harness.worker.ttir import launch as compiled
from harness.worker.ttir import lowering
from harness.worker.ttir.machine import Wrong

from . import shadow
from .host_copies import PART_COPIES, HostCopies, elements_of, flat
from .kernels_only import Kernels, NotAKernel, language
from .lasting import Lasting
from .same_key import LaunchKeys

MAX_STORAGE_BYTES = 4 << 30
_CONSTANTS = frozenset(
    {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "strided", "device"}
)


class Refused(Exception):
    """The record cannot be what honest code does; `kind` and `line` are for the error report."""

    def __init__(self, message: str, kind: str = "not_replayed", line: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.line = kind, line


class Diverged(Exception):
    """Python read other values when the record was made: with these inputs it might have gone another way."""


class InOrder(Exception):
    """Programs wait for others of their launch, which they take to be run before them."""


class NotKnown(Exception):
    """The record names memory of a call that was not replayed."""


class Device(Protocol):
    """Where records are run again."""

    name: str
    """As torch calls it."""

    def observe(self, inputs: Mapping[str, torch.Tensor]) -> AbstractContextManager[Observation]:
        """Watches what kernels do until the block ends."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One that was run with another device's arithmetic, to be run once more."""

    record: Record
    inputs: dict[str, torch.Tensor]
    gap: bool
    reads: bool


class Replayer:
    """One candidate's kernels, and the memory that lives from call to call."""

    def __init__(
        self, source: str, file: str, device: Device, allowed: tuple[str, ...], tables: Iterable[Table]
    ) -> None:
        self._kernels = Kernels(source, file, self.value)
        self._device = device
        self._allowed = allowed
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._inputs: tuple[int, ...] = ()
        self._addressed: set[int] = set()
        """Storages whose addresses were put into memory or handed to kernels: later calls may go by them."""
        self._gap, self._reads = False, True
        self._last: _Call | None = None
        self._compiled = False
        self._elsewhere = 0
        self._observation: Observation | None = None
        self._functions: dict[Function, Any] = {}
        self._before: tuple[dict[int, bytes], dict[int, torch.Tensor]] = ({}, {})
        self._copies = HostCopies()
        self.shadows = shadow.Shadows()
        self._lasting = Lasting()
        self._keys = LaunchKeys()
        self._notes: tuple[FunctionNotes, ...] = ()
        for table in tables:
            self._contents(table.storage, len(table.data), table.data)

    def run(
        self,
        record: Record,
        inputs: Mapping[str, torch.Tensor],
        *,
        again: bool,
        gap: bool,
        backwards: bool = False,
        in_order: bool = False,
        elsewhere: int = 0,
        reads: bool = True,
        compiled: bool = False,
    ) -> Observation:
        """
        What the kernels did; the outputs are then to be had by `output`.

        `again`: the same call as before, so memory that outlives calls goes back to what it was. `gap`: calls before it were
        not replayed, so memory of theirs is not known (`NotKnown`). `backwards`: the programs of each launch are run from the
        last to the first, which must make no difference; `InOrder` where one waits for a program that was to come before it, unless
        they are run `in_order`.
        `elsewhere`: whose arithmetic it is, of many devices, which must make none either; what it leaves in memory that outlives calls is made
        once more as it is here before the next call.
        `compiled`: kernels are run as Triton's compiler reads them, by their IR; `Unread` where it holds what is not known here.
        `Diverged` where Python would read something else now, be it of an input, where `reads` says that this counts.
        """
        if again:
            self._restore()
        else:
            self._settle(record)
        self._last = None
        leaves_other = bool(elsewhere) or compiled
        given = {name: _copied(tensor) for name, tensor in inputs.items()} if leaves_other else {}
        self._compiled, self._elsewhere = compiled, elsewhere
        self._gap, self._reads = gap, reads
        for number in (*record.forgotten, *self._inputs):
            self._storages.pop(number, None)
            self.shadows.forget(number)
            self._lasting.forget(number)
        self._inputs = tuple(record.inputs.values())
        self._copies = HostCopies(tuple(elements_of(tensor.contiguous()) for tensor in inputs.values()))
        self._keep()
        if not again:
            self._lasting.begin(self._before[0])
        for name, number in record.inputs.items():
            if name not in inputs:
                raise Refused(f"the record names an input `{name}` that there is not")
            self._bind(number, inputs[name].untyped_storage(), shadow.ORIGINAL)
        self._notes = record.functions
        self._functions = self._kernels.build(record.functions, readable=compiled)
        with self._device.observe(inputs) as observation:
            self._observation = observation
            observation.programs.backwards, observation.programs.in_order = backwards, in_order
            observation.programs.elsewhere = elsewhere
            for number, storage in self._storages.items():
                observation.pasts[storage.data_ptr()] = self._lasting.past(number)
            self._addressed &= self._storages.keys()
            for number in self._addressed:
                observation.origin(flat(self._storages[number]))
            for number in self._inputs:
                address = self._storages[number].data_ptr()
                if address in observation.allocations:
                    observation.allocations[address].past = observation.pasts[address]
                self._lasting.past(number).level = INPUTS
            totals: dict[int, np.ndarray[Any, Any]] = {}
            tried = trials(record)
            for at, step in enumerate(record.steps):
                with tuning.uncounted(observation) if at in tried else nullcontext():
                    self._step(step, observation, totals)
            for address, written in totals.items():
                observation.allocations[address].writes[:] = written
        if leaves_other:
            self._last = _Call(record, given, gap, reads)
        return observation

    def _settle(self, following: Record) -> None:
        """Memory that outlives the last call is what this device's arithmetic makes of it, not another's; what was returned is the
        caller's, and no later call's to read.
        """
        last, self._last = self._last, None
        if last is None:
            return
        passing = {*following.forgotten, *self._inputs, *(view.storage for view in last.record.returned)}
        held = self._before[0]
        if any(
            flat(storage).cpu().numpy().tobytes() != held.get(number)
            for number, storage in self._storages.items()
            if number not in passing
        ):
            self.run(last.record, last.inputs, again=True, gap=last.gap, reads=last.reads)

    def output(self, view: View) -> tuple[torch.Tensor, dict[str, int]]:
        """The elements of a returned tensor, and how many of them came from where.

        Kernels that copy what host operators had put in its place add nothing: such elements count as moved.
        """
        tensor = self._tensor(view).contiguous()
        if self._is_left(view):
            raise Refused("an output holds what an earlier call left there", kind="kept_state")
        origins = self.shadows.count(view, tensor.element_size())
        if origins.get("stored") and self._copies.held(elements_of(tensor)):
            origins["moved"] = origins.get("moved", 0) + origins.pop("stored")
        return tensor, origins

    def touched(self) -> tuple[int, ...]:
        """Inputs that anything was written to, be it what stood there before."""
        return tuple(number for number in self._inputs if not self.shadows.is_all(number, shadow.ORIGINAL))

    def value(self, value: Value) -> Any:
        """What a record's value stands for."""
        match value:
            case View():
                return self._tensor(value)
            case Dtype(name=name):
                return _dtype(name)
            case Constant(name="device"):
                return torch.device(self._device.name)
            case Constant(name=name) if name in _CONSTANTS:
                return getattr(torch, name)
            case Items(items=items, fields=fields):
                made = tuple(self.value(one) for one in items)
                if len(fields) == len(made) and all(name.isidentifier() for name in fields) and fields:
                    return collections.namedtuple("Named", fields)(*made)
                return made
            case Constexpr(value=inner):
                return tl.constexpr(self.value(inner))
            case Language(member=""):
                raise NotAKernel(f"a kernel is handed the module {value.module}", None)
            case Language():
                return lowering.compiled(language(value)) if self._compiled else language(value)
            case Function():
                if value not in self._functions:
                    raise Refused(f"the record names a kernel `{value.name}` that it does not describe")
                return self._functions[value]
            case Descriptor():
                return TensorDescriptor(
                    self._tensor(value.base),
                    list(value.shape),
                    list(value.strides),
                    list(value.block_shape),
                    value.padding,
                )
            case Reinterpreted():
                return triton.reinterpret(self._tensor(value.base), _dtype(value.dtype))
            case Address():
                return self._address(value)
            case None | bool() | int() | float() | str():
                return value
            case _:
                raise Refused("the record holds a value of no known kind")

    def _step(self, step: Any, observation: Observation, totals: dict[int, Any]) -> None:
        match step:
            case Contents():
                self._contents(step.storage, step.size_bytes, step.data, step.addresses)
            case Operator():
                self._operator(step)
            case Launch():
                self._launch(step)
                self._note_stores(observation, totals)
            case HostRead():
                if not self._reads and step.view.storage in self._inputs:
                    return
                if digest(self._tensor(step.view).contiguous()) != step.digest:
                    raise Diverged
            case _:
                raise Refused("the record holds a step of no known kind")

    def _launch(self, step: Launch) -> None:
        self._copies.look(self._storages, self.shadows)
        kernel = self.value(step.kernel)
        if min(step.grid) < 0:
            raise Refused(f"kernel `{step.kernel.name}` is launched on the grid {step.grid}")
        mixed = self._keys.mixes(step, self._notes)
        if mixed is not None:
            raise Refused(mixed, kind="mixed_constants", line=step.kernel.line)
        arguments = {name: self.value(value) for name, value in step.arguments.items()}
        options = {name: self.value(value) for name, value in step.options.items()}
        if self._compiled:
            self._launch_compiled(step, kernel, arguments, options)
            return
        try:
            with launches.options(options):
                kernel[step.grid](**arguments, **{name: options[name] for name in options.keys() - arguments})
        except interpreter.InterpreterError as error:
            if self._observation is not None and self._observation.programs.waits:
                raise InOrder from error
            raise
        if self._observation is not None and self._observation.races:
            raise Refused(self._observation.races[0], kind="race")
        if self._observation is not None and self._observation.false_promises:
            raise Refused(self._observation.false_promises[0], kind="false_promise")
        if self._observation is not None and self._observation.quotients:
            raise Refused(self._observation.quotients[0], kind="division_by_zero")
        if self._observation is not None and self._observation.left_reads:
            raise Refused(self._observation.left_reads[0], kind="kept_state")

    def _launch_compiled(
        self, step: Launch, kernel: Any, arguments: dict[str, Any], options: dict[str, Any]
    ) -> None:
        assert self._observation is not None
        try:
            compiled.launch(kernel, step.grid, arguments, options, self._observation)
        except Wrong as wrong:
            where = f"line {wrong.line}: " if wrong.line is not None else ""
            raise Refused(f"{where}{wrong}", kind="read_otherwise", line=wrong.line) from wrong
        except lowering.NotLowered as error:
            told = f"Triton's compiler refuses `{step.kernel.name}`: {error}"
            raise Refused(told, kind="read_otherwise", line=step.kernel.line) from error

    def _note_stores(self, observation: Observation, totals: dict[int, Any]) -> None:
        """What the launch stored is its own now; counted anew for the next one, as a host copy may come between."""
        numbers = {storage.data_ptr(): number for number, storage in self._storages.items()}
        for address, known in observation.allocations.items():
            if not known.writes.any():
                continue
            number = numbers.get(address)
            if number is not None:
                first = known.span.start - address
                self.shadows.store(number, first, torch.from_numpy(known.writes))
                now = flat(self._storages[number]).cpu().numpy()
                self._lasting.store(number, first, known.writes, observation.read_past, now)
            seen = totals.get(address)
            totals[address] = known.writes.copy() if seen is None else seen | known.writes
            known.writes[:] = 0

    def _operator(self, step: Operator) -> None:
        if not operators.is_allowed(step.name, self._allowed):
            raise Refused(
                f"the tensor operator `{step.name}` computes outside the Triton kernels; do it in a kernel",
                kind="operator",
                line=step.line,
            )
        if step.name in operators.FILLING and _values_of(step) and step.name not in operators.SETTING:
            raise Refused(
                f"the tensor operator `{step.name}` computes from a tensor outside the Triton kernels; do it in a kernel",
                kind="operator",
                line=step.line,
            )
        packet = getattr(torch.ops.aten, step.name, None)
        function = getattr(packet, step.overload, None)
        if function is None:
            raise Refused(f"there is no tensor operator `{step.name}.{step.overload}`")
        named = {name: self.value(value) for name, value in step.named.items()}
        if any(one.name == "device" for one in function._schema.arguments):
            named["device"] = self._device.name
        try:
            result = function(*(self.value(value) for value in step.arguments), **named)
        except (RuntimeError, TypeError, ValueError) as error:
            raise Refused(f"the tensor operator `{step.name}` does not run as recorded: {error}") from error
        made = list(tensors(result))
        if len(made) != len(step.results):
            raise Refused(
                f"the tensor operator `{step.name}` gave {len(made)} tensors, not {len(step.results)}"
            )
        for view, tensor in zip(step.results, made, strict=True):
            self._made(step, view, tensor)

    def _made(self, step: Operator, view: View, tensor: torch.Tensor) -> None:
        """An operator's result gets its number, and marks by what the operator is."""
        known = self._storages.get(view.storage)
        if known is None or known._cdata != tensor.untyped_storage()._cdata:
            self._bind(view.storage, tensor.untyped_storage(), shadow.UNWRITTEN)
        if (tuple(tensor.shape), tuple(tensor.stride())) != (view.shape, view.strides):
            raise Refused(f"the tensor operator `{step.name}` gave another shape than recorded")
        item_bytes = tensor.element_size()
        if step.name in operators.ALLOCATING:
            self._poison(tensor)
            return
        sources = _values_of(step) if step.name in operators.FREE else _views_of(step)
        if step.name not in operators.FREE and any(map(self._is_left, sources)):
            raise Refused(
                f"line {step.line}: `{step.name}` reads what an earlier call left; no answer may hang on the calls before",
                kind="kept_state",
            )
        self._lasting.write(view, item_bytes, sources, flat(self._storages[view.storage]).cpu().numpy())
        if step.name in operators.MOVING or (step.name in operators.SETTING and sources):
            source, source_bytes = sources[-1], _dtype(sources[-1].dtype).itemsize
            self._lasting.copy(view, item_bytes, source, source_bytes)
            self.shadows.copy(view, item_bytes, source, source_bytes)
            if self._copies.add(view.storage, part=self._is_part(view) or self._is_part(source)):
                raise Refused(
                    f"more than {PART_COPIES} copies by `{step.name}` into or out of parts of tensors move elements outside the "
                    "Triton kernels; move them in a kernel",
                    kind="moved_by_host",
                    line=step.line,
                )
        elif step.name in operators.FILLING:
            self.shadows.fill(view, item_bytes, shadow.FILLED)
        else:
            self.shadows.fill(view, item_bytes, shadow.OPERATED)

    def _poison(self, tensor: torch.Tensor) -> None:
        """Other bytes elsewhere: kernels that ask memory whether nobody wrote it answer otherwise there."""
        if self._elsewhere and tensor.numel():
            poison.other(tensor, self._elsewhere)
        else:
            poison.poison(tensor)

    def _is_left(self, view: View) -> bool:
        return self._lasting.is_left(view, _dtype(view.dtype).itemsize)

    def _is_part(self, view: View) -> bool:
        return math.prod(view.shape) * _dtype(view.dtype).itemsize < self._storages[view.storage].nbytes()

    def _contents(
        self, number: int, size_bytes: int, data: bytes | None, addresses: Iterable[tuple[int, Address]] = ()
    ) -> None:
        """Memory from the host; memory that was there before and has no bytes is poison, unless it is known."""
        if number in self._storages and data is None:
            return
        if not 0 <= size_bytes <= MAX_STORAGE_BYTES or (data is not None and len(data) != size_bytes):
            raise Refused("the record holds memory of another size than it says")
        memory = torch.empty(size_bytes, dtype=torch.uint8, device=self._device.name)
        if data:
            memory.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        elif size_bytes:
            memory.fill_(0xFF)
            if self._elsewhere:
                poison.other(memory, self._elsewhere)
        for place, address in addresses:
            if not 0 <= place <= size_bytes - 8:
                raise Refused("the record holds an address outside its memory")
            word = torch.tensor([self._address(address)], dtype=torch.int64)
            memory[place : place + 8].copy_(word.view(torch.uint8))
        self._bind(number, memory.untyped_storage(), shadow.UNWRITTEN if data is None else shadow.HOST)
        if data is not None:
            self._lasting.hold(number, memory.cpu().numpy())

    def _address(self, address: Address) -> int:
        storage = self._storages.get(address.storage)
        if storage is None or not 0 <= address.offset_bytes <= storage.nbytes():
            raise Refused("the record holds an address of no memory")
        self._addressed.add(address.storage)
        start = int(storage.data_ptr())
        if self._observation is not None:
            self._observation.origin(flat(storage))  # no launch argument will name it
            if self._observation.programs.elsewhere:
                start = whereabouts.place(self._observation, start)
        return start + address.offset_bytes

    def _tensor(self, view: View) -> torch.Tensor:
        storage = self._storages.get(view.storage)
        dtype = _dtype(view.dtype)
        if storage is None and self._gap:
            raise NotKnown("memory of a call that was not replayed")
        if storage is None:
            raise Refused("the record names memory that nothing made")
        if not fits(view, dtype.itemsize, storage.nbytes()):
            raise Refused("the record names a tensor that reaches out of its memory")
        empty = torch.empty(0, dtype=dtype, device=self._device.name)
        return empty.set_(storage, view.offset, view.shape, view.strides)

    def _bind(self, number: int, storage: torch.UntypedStorage, mark: int) -> None:
        self._storages[number] = storage
        self.shadows.add(number, storage.nbytes(), mark)
        past = self._lasting.add(number, storage.nbytes())
        if self._observation is not None:
            self._observation.pasts[storage.data_ptr()] = past

    def _keep(self) -> None:
        """Remembers the memory that outlives calls."""
        held = {number: flat(storage).cpu().numpy().tobytes() for number, storage in self._storages.items()}
        self._before = (held, self.shadows.snapshot())

    def _restore(self) -> None:
        held, marks = self._before
        self._storages = {number: storage for number, storage in self._storages.items() if number in held}
        for number, storage in self._storages.items():
            if held[number]:
                flat(storage).copy_(torch.frombuffer(bytearray(held[number]), dtype=torch.uint8))
        self.shadows.restore(marks)
        self._lasting.rewind(self._storages)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """In memory of its own that is laid out alike."""
    storage: torch.UntypedStorage = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
    empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return empty.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise Refused(f"the record names a dtype {name!r}")
    return dtype


def _values_of(step: Operator) -> list[View]:
    """Tensors whose values go into the result of a copy or a fill; its target and a tensor that only lends its shape do not."""
    first = 0 if step.name in operators.MOVING and step.name != "copy_" else 1
    if step.name in operators.FILLING and not step.name.endswith(("_like", "fill", "fill_", "zero", "zero_")):
        first = 1 if step.name.startswith("new_") else 0
    given = (*step.arguments[first:], *step.named.values())
    return [value for value in given if isinstance(value, View)]


def _views_of(step: Operator) -> list[View]:
    """All tensors that an operator is given."""
    given = [*step.arguments, *step.named.values()]
    parts = [part for value in given if isinstance(value, Items) for part in value.items]
    return [value for value in (*given, *parts) if isinstance(value, View)]
