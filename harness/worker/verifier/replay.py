"""
Runs a record again: allocations, fills, copies and launches, on inputs of the judge's and with kernels alone.

Nothing of the candidate's host code takes part, so outputs that are right here were computed by its kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import triton
from triton.runtime import interpreter
from triton.tools.tensor_descriptor import TensorDescriptor

from harness.worker.guest.record import digest
from harness.worker.interpreter import launches, tuning
from harness.worker.interpreter.traffic import Observation
from harness.worker.serving.records import (
    Address,
    Constant,
    Contents,
    Descriptor,
    Function,
    FunctionNotes,
    HostRead,
    Language,
    Launch,
    Operator,
    Record,
    Reinterpreted,
    Table,
    Value,
    View,
    trials,
)
from harness.worker.ttir import launch as compiled
from harness.worker.ttir import lowering
from harness.worker.ttir.endings import Wrong

from . import shadow
from .endings import Diverged, InOrder, Refused
from .host_copies import HostCopies, elements_of
from .host_operators import HostOperators
from .kernels_only import Kernels, NotAKernel, language
from .memory import Memory, dtype_named
from .same_key import LaunchKeys
from .values import constant

_CONSTANTS = frozenset(
    {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "strided", "device"}
)


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
        self._memory = Memory(device.name)
        self._operators = HostOperators(self._memory, allowed, self.value)
        self._inputs: tuple[int, ...] = ()
        self._reads = True
        self._last: _Call | None = None
        self._compiled = False
        self._functions: dict[Function, Any] = {}
        self._keys = LaunchKeys()
        self._notes: tuple[FunctionNotes, ...] = ()
        for table in tables:
            self._memory.fill(table.storage, len(table.data), table.data)

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
        memory = self._memory
        if again:
            memory.restore()
        else:
            self._settle(record)
        self._last = None
        leaves_other = bool(elsewhere) or compiled
        given = {name: _copied(tensor) for name, tensor in inputs.items()} if leaves_other else {}
        self._compiled, self._reads = compiled, reads
        memory.gap, memory.elsewhere = gap, elsewhere
        memory.forget((*record.forgotten, *self._inputs))
        self._inputs = tuple(record.inputs.values())
        memory.copies = HostCopies(tuple(elements_of(tensor.contiguous()) for tensor in inputs.values()))
        memory.keep()
        if not again:
            memory.lasting.begin(memory.held)
        for name, number in record.inputs.items():
            if name not in inputs:
                raise Refused(f"the record names an input `{name}` that there is not")
            memory.bind(number, inputs[name].untyped_storage(), shadow.ORIGINAL)
        self._notes = record.functions
        self._functions = self._kernels.build(record.functions, readable=compiled)
        with self._device.observe(inputs) as observation:
            observation.programs.backwards, observation.programs.in_order = backwards, in_order
            observation.programs.elsewhere = elsewhere
            memory.observe(observation, self._inputs)
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
        if not self._memory.is_as_held(passing):
            self.run(last.record, last.inputs, again=True, gap=last.gap, reads=last.reads)

    def output(self, view: View) -> tuple[torch.Tensor, dict[str, int]]:
        """The elements of a returned tensor, and how many of them came from where.

        Kernels that copy what host operators had put in its place add nothing: such elements count as moved.
        """
        tensor = self._memory.tensor(view).contiguous()
        if self._memory.is_left(view):
            raise Refused("an output holds what an earlier call left there", kind="kept_state")
        origins = self._memory.shadows.count(view, tensor.element_size())
        if origins.get("stored") and self._memory.copies.held(elements_of(tensor)):
            origins["moved"] = origins.get("moved", 0) + origins.pop("stored")
        return tensor, origins

    def touched(self) -> tuple[int, ...]:
        """Inputs that anything was written to, be it what stood there before."""
        return tuple(
            number for number in self._inputs if not self._memory.shadows.is_all(number, shadow.ORIGINAL)
        )

    def value(self, value: Value) -> Any:
        """What a record's value stands for."""
        match value:
            case View():
                return self._memory.tensor(value)
            case Constant(name="device"):
                return torch.device(self._device.name)
            case Constant(name=name) if name in _CONSTANTS:
                return getattr(torch, name)
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
                    self._memory.tensor(value.base),
                    list(value.shape),
                    list(value.strides),
                    list(value.block_shape),
                    value.padding,
                )
            case Reinterpreted():
                return triton.reinterpret(self._memory.tensor(value.base), dtype_named(value.dtype))
            case Address():
                return self._memory.address(value)
            case _:
                return constant(value, self.value)

    def _step(self, step: Any, observation: Observation, totals: dict[int, Any]) -> None:
        match step:
            case Contents():
                self._memory.fill(step.storage, step.size_bytes, step.data, step.addresses)
            case Operator():
                self._operators.run(step)
            case Launch():
                self._launch(step, observation)
                self._memory.note_stores(totals)
            case HostRead():
                if not self._reads and step.view.storage in self._inputs:
                    return
                if digest(self._memory.tensor(step.view).contiguous()) != step.digest:
                    raise Diverged
            case _:
                raise Refused("the record holds a step of no known kind")

    def _launch(self, step: Launch, observation: Observation) -> None:
        memory = self._memory
        memory.copies.look(memory.storages, memory.shadows)
        kernel = self.value(step.kernel)
        if min(step.grid) < 0:
            raise Refused(f"kernel `{step.kernel.name}` is launched on the grid {step.grid}")
        mixed = self._keys.mixes(step, self._notes)
        if mixed is not None:
            raise Refused(mixed, kind="mixed_constants", line=step.kernel.line)
        arguments = {name: self.value(value) for name, value in step.arguments.items()}
        options = {name: self.value(value) for name, value in step.options.items()}
        if self._compiled:
            _launch_compiled(step, kernel, arguments, options, observation)
            return
        try:
            with launches.options(options):
                kernel[step.grid](**arguments, **{name: options[name] for name in options.keys() - arguments})
        except interpreter.InterpreterError as error:
            if observation.programs.waits:
                raise InOrder from error
            raise
        if observation.races:
            raise Refused(observation.races[0], kind="race")
        if observation.false_promises:
            raise Refused(observation.false_promises[0], kind="false_promise")
        if observation.quotients:
            raise Refused(observation.quotients[0], kind="division_by_zero")
        if observation.left_reads:
            raise Refused(observation.left_reads[0], kind="kept_state")


def _launch_compiled(
    step: Launch, kernel: Any, arguments: dict[str, Any], options: dict[str, Any], observation: Observation
) -> None:
    try:
        compiled.launch(kernel, step.grid, arguments, options, observation)
    except Wrong as wrong:
        where = f"line {wrong.line}: " if wrong.line is not None else ""
        raise Refused(f"{where}{wrong}", kind="read_otherwise", line=wrong.line) from wrong
    except lowering.NotLowered as error:
        told = f"Triton's compiler refuses `{step.kernel.name}`: {error}"
        raise Refused(told, kind="read_otherwise", line=step.kernel.line) from error


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """In memory of its own that is laid out alike."""
    storage: torch.UntypedStorage = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
    empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return empty.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())
