"""Replays the record of a call on the judge's inputs: allocations, fills, copies and launches.

The candidate's host code does not run, so that correct outputs of a replay were computed by its kernels.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from harness.wire.calls import records
from harness.wire.calls.records import Function, Launch, Record, Step, Value, View
from harness.worker.interpreter import interpreted_launches, interpreter
from harness.worker.interpreter.traffic import Observation

from . import shadow
from .call_recorder import digest
from .host_operators import HostOperators
from .kernels_only import Kernels, NotAKernel, language
from .replay_endings import Diverged, ProgramsWait, Refused
from .replay_memory import Memory, dtype_named


class Replayer:
    """Replays records of one candidate; holds its kernels and the memory of the last replay."""

    def __init__(self, source: str, file: str, allowed: tuple[str, ...]) -> None:
        """`allowed`: tensor operators with which the task lets the host compute."""
        self._kernels = Kernels(source, file, self.decode)
        self._allowed = allowed
        self._memory = Memory(Observation())
        self._inputs: dict[str, int] = {}
        self._functions: dict[Function, Any] = {}

    def run(
        self,
        record: Record,
        inputs: Mapping[str, torch.Tensor],
        *,
        backwards: bool = False,
        zero_lanes: bool = False,
    ) -> Observation:
        """Replay a record on these inputs; `output` then gives the outputs.

        `backwards`: run the programs of each launch from the last to the first. Raises `ProgramsWait` if a program waits
        for a program that then comes later, and `Diverged` if Python would read different values now. Raises `Refused` if
        the host computed, and `NotAKernel` if a kernel cannot be built from its text. A record that contradicts itself may
        raise any exception: a guest gains nothing by a forged record.
        """
        self._functions = self._kernels.build(record.functions)
        with interpreter.observe(inputs) as observation:
            observation.order = int(backwards)
            observation.zero_lanes = zero_lanes
            memory = self._memory = Memory(observation)
            operators = HostOperators(memory, self._allowed, self.decode)
            self._inputs = record.inputs
            for name, number in record.inputs.items():
                memory.bind(number, inputs[name].untyped_storage(), shadow.ORIGINAL)
            trials = records.trials(record)
            for index, step in enumerate(record.steps):
                with observation.counting(trial=index in trials):
                    self._step(step, observation, operators)
            memory.restore_counts()
        return observation

    def output(self, view: View) -> tuple[torch.Tensor, dict[str, int]]:
        """A returned tensor, and the number of its elements with each mark."""
        tensor = self._memory.tensor(view).contiguous()
        return tensor, self._memory.shadows.count(view, tensor.element_size())

    def touched(self) -> tuple[str, ...]:
        """Names of the inputs that kernels stored to, even if they stored the same bytes."""
        shadows = self._memory.shadows
        return tuple(name for name, number in self._inputs.items() if shadows.has(number, shadow.STORED))

    def decode(self, value: Value) -> Any:
        """The Python value for a value of a record; raises `NotAKernel` for a value that no source text can hold."""
        match value:
            case View():
                return self._memory.tensor(value)
            case records.Constant(name="device"):
                return torch.device("cpu")
            case records.Constant(name=name):
                return getattr(torch, name)
            case records.Language(member=""):
                raise NotAKernel(f"a kernel is handed the module {value.module}", None)
            case records.Language():
                return language(value)
            case Function():
                return self._functions[value]
            case records.Descriptor():
                return TensorDescriptor(
                    self._memory.tensor(value.base),
                    list(value.shape),
                    list(value.strides),
                    list(value.block_shape),
                    value.padding,
                )
            case records.Reinterpreted():
                return triton.reinterpret(self._memory.tensor(value.base), dtype_named(value.dtype))
            case records.Address():
                return self._memory.address(value)
            case records.Dtype(name=name):
                return dtype_named(name)
            case records.Items(items=items, fields=fields):
                decoded = tuple(map(self.decode, items))
                return collections.namedtuple("Named", fields)(*decoded) if fields else decoded
            case records.Constexpr(value=inner):
                return tl.constexpr(self.decode(inner))
            case None | bool() | int() | float() | str():
                return value
            case _:
                raise NotAKernel("a kernel is given a value that no source text can hold", None)

    def _step(self, step: Step, observation: Observation, operators: HostOperators) -> None:
        match step:
            case records.Contents():
                self._memory.fill(step.storage, step.size_bytes, step.data, step.addresses)
            case records.Operator():
                operators.run(step)
            case Launch():
                self._launch(step, observation)
                self._memory.note_stores()
            case records.HostRead():
                if digest(self._memory.tensor(step.view).contiguous()) != step.digest:
                    raise Diverged

    def _launch(self, step: Launch, observation: Observation) -> None:
        if step.kernel.module:
            kernel = f"`{step.kernel.name}` of {step.kernel.module}"
            raise Refused(f"the kernel {kernel} was launched", "foreign_kernel")
        kernel = self.decode(step.kernel)
        arguments = {name: self.decode(value) for name, value in step.arguments.items()}
        options = {name: self.decode(value) for name, value in step.options.items()}
        try:
            interpreted_launches.run(kernel, step.grid, (), arguments, options)
        except triton.InterpreterError as error:
            if observation.waits:
                raise ProgramsWait from error
            raise
