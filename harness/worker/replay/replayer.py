"""
Runs a record again: allocations, fills, copies and launches, on inputs of the judge's and with kernels alone.

Nothing of the candidate's host code takes part, so outputs that are right here were computed by its kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
import triton
from triton.runtime import interpreter as triton_interpreter
from triton.tools.tensor_descriptor import TensorDescriptor

from harness.wire.records import (
    Address,
    Constant,
    Contents,
    Descriptor,
    Function,
    HostRead,
    Language,
    Launch,
    Operator,
    Record,
    Reinterpreted,
    Step,
    Value,
    View,
    trials,
)
from harness.worker.interpreter import interpreted_launches, interpreter, tuning
from harness.worker.interpreter.races import Races
from harness.worker.interpreter.traffic import Observation
from harness.worker.recording.recorder import digest

from . import shadow
from .host_operators import HostOperators
from .kernels_only import Kernels, NotAKernel, language
from .record_values import constant
from .replay_endings import Diverged, ProgramsWait
from .replay_memory import Memory, dtype_named


class Replayer:
    """One candidate's kernels, and the memory of the last replay."""

    def __init__(self, source: str, file: str, allowed: tuple[str, ...]) -> None:
        """`allowed`: tensor operators that the task lets the host compute with."""
        self._kernels = Kernels(source, file, self.value)
        self._allowed = allowed
        self._memory = Memory(Observation())
        self._inputs: tuple[int, ...] = ()
        self._functions: dict[Function, Any] = {}

    def run(
        self,
        record: Record,
        inputs: Mapping[str, torch.Tensor],
        *,
        backwards: bool = False,
        find_races: bool = False,
    ) -> Observation:
        """
        Replays a record on these inputs; the outputs are then to be had by `output`.

        `backwards`: the programs of each launch run from the last to the first; `ProgramsWait` where one waits for a
        program that then comes later. `Diverged` where Python would read other values now. `Refused` where the host
        computed, `NotAKernel` where a kernel cannot be built from the text alone. A record that contradicts itself raises
        what Python raises: a guest that forges records could as well send none.
        """
        self._functions = self._kernels.build(record.functions)
        with interpreter.observe(inputs) as observation:
            observation.backwards = backwards
            observation.race_finder = Races() if find_races else None
            memory = self._memory = Memory(observation)
            operators = HostOperators(memory, self._allowed, self.value)
            self._inputs = tuple(record.inputs.values())
            for name, number in record.inputs.items():
                memory.bind(number, inputs[name].untyped_storage(), shadow.ORIGINAL)
            tried = trials(record)
            for at, step in enumerate(record.steps):
                with tuning.uncounted(observation) if at in tried else nullcontext():
                    self._step(step, observation, operators)
            memory.restore_counts()
        return observation

    def output(self, view: View) -> tuple[torch.Tensor, dict[str, int]]:
        """The elements of a returned tensor, and how many of them have which mark."""
        tensor = self._memory.tensor(view).contiguous()
        return tensor, self._memory.shadows.count(view, tensor.element_size())

    def touched(self) -> tuple[int, ...]:
        """Inputs that kernels stored to, even if the same bytes stand there again."""
        return tuple(number for number in self._inputs if self._memory.shadows.has(number, shadow.STORED))

    def value(self, value: Value) -> Any:
        """What a record's value stands for."""
        match value:
            case View():
                return self._memory.tensor(value)
            case Constant(name="device"):
                return torch.device("cpu")
            case Constant(name=name):
                return getattr(torch, name)
            case Language(member=""):
                raise NotAKernel(f"a kernel is handed the module {value.module}", None)
            case Language():
                return language(value)
            case Function():
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

    def _step(self, step: Step, observation: Observation, operators: HostOperators) -> None:
        match step:
            case Contents():
                self._memory.fill(step.storage, step.size_bytes, step.data, step.addresses)
            case Operator():
                operators.run(step)
            case Launch():
                self._launch(step, observation)
                self._memory.note_stores()
            case HostRead():
                if digest(self._memory.tensor(step.view).contiguous()) != step.digest:
                    raise Diverged

    def _launch(self, step: Launch, observation: Observation) -> None:
        kernel = self.value(step.kernel)
        arguments = {name: self.value(value) for name, value in step.arguments.items()}
        options = {name: self.value(value) for name, value in step.options.items()}
        try:
            with interpreted_launches.options(options):
                kernel[step.grid](**arguments, **{name: options[name] for name in options.keys() - arguments})
        except triton_interpreter.InterpreterError as error:
            if observation.waits:
                raise ProgramsWait from error
            raise
