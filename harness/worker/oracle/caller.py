"""Calls a candidate's entry point in its guest: the only place where inputs leave the judge and outputs come back."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import torch

from harness.cases.call_plan import Step
from harness.wire.limits import TimeLimits
from harness.wire.messages.guest import Call, OutputData, Returned
from harness.worker.kit import place
from harness.worker.kit.arena import Arena, lay_out
from harness.worker.kit.device_memory import DeviceArena, NotShared, SharedMemory, rounded
from suites.dtypes import ITEM_BYTES
from suites.source.signature import parse_signature
from suites.task import Case, Task
from suites.tolerances import dtype_of

from .digests import digest
from .lines import GuestLied, WorkerLine
from .problem import Inputs, torch_dtype
from .vault import Given


@dataclass
class Run:
    """One call of the entry point, as the judge saw it."""

    step: Step
    given: Given
    returned: Returned
    changed_inputs: tuple[str, ...]
    """Inputs with bytes that differ after the call: proof."""
    broken_guards: tuple[str, ...]
    shared_outputs: dict[int, torch.Tensor] = field(default_factory=dict)
    """Bytes of outputs that came in shared memory, by output number: copies out of the guest's reach."""

    @property
    def case(self) -> Case:
        """The case of the call."""
        return self.given.case.case

    @property
    def inputs(self) -> Inputs:
        """The arguments, as the judge keeps them."""
        return self.given.inputs

    @cached_property
    def answer(self) -> bytes:
        """A digest of all outputs: equal if they are equal bit for bit."""
        whole = hashlib.blake2b()
        for number, output in enumerate(self.returned.outputs):
            whole.update(
                digest(self.shared_outputs[number]) if number in self.shared_outputs else output.data
            )
        return whole.digest()

    def output(self, number: int) -> torch.Tensor:
        """Return one output on the judge's device. Raises `GuestLied` if its bytes do not fill its shape."""
        data = self.returned.outputs[number]
        if number not in self.shared_outputs:
            return place.here(tensor_of(data))
        return self.shared_outputs[number].view(torch_dtype(data.dtype)).reshape(data.shape)


def tensor_of(data: OutputData) -> torch.Tensor:
    """Return the guest's bytes as a tensor. Raises `GuestLied` if they do not fill the shape."""
    size_bytes = size_of(data)
    if len(data.data) != size_bytes:
        raise GuestLied(f"{len(data.data)} bytes for {data.dtype}{list(data.shape)}")
    if size_bytes == 0:
        return torch.empty(data.shape, dtype=torch_dtype(data.dtype))
    return torch.frombuffer(bytearray(data.data), dtype=torch_dtype(data.dtype)).reshape(data.shape)


def size_of(data: OutputData) -> int:
    """Return the size of an output by its shape and dtype. Raises `GuestLied` for an impossible shape or dtype."""
    if data.dtype not in ITEM_BYTES:
        raise GuestLied(f"no output has the dtype {data.dtype!r}")
    if min(data.shape, default=0) < 0:
        raise GuestLied(f"no output has the shape {list(data.shape)}")
    count = torch_dtype(data.dtype).itemsize
    for size in data.shape:
        count *= size
    return count


class Caller:
    """Calls one guest. Close it after the last call: it may hold the memory of a call."""

    def __init__(
        self, link: WorkerLine, task: Task, limits: TimeLimits, given: Callable[[Step], Given]
    ) -> None:
        self._link = link
        self._entry_point = task.entry_points[0].name
        self._limits = limits
        self._given = given
        self._task = task
        self._signature = parse_signature(task.entry_points[0].signature)
        self._kept_arena: Arena | DeviceArena | None = None
        self._shares = False
        self.zero_lanes = False
        """Lanes that a masked load without `other` leaves out hold 0 from now on."""
        self.in_order = False
        """Programs run in order from now on."""
        self._memory: SharedMemory | None = None
        """Memory that the guest reaches too: inputs, then outputs. It is replaced when a case needs more."""

    def try_sharing(self) -> SharedMemory | None:
        """Return device memory for the guest to open; `None` on `cpu` and if memory cannot be shared."""
        if place.is_gpu():
            with suppress(NotShared):
                self._memory = SharedMemory(1)
        return self._memory

    def share(self) -> None:
        """Note that the guest can open the memory of `try_sharing`."""
        self._shares = self._memory is not None

    def call(
        self, step: Step, *, first: bool = False, wall_s: float | None = None, values: Given | None = None
    ) -> Run:
        """Make one call of the plan, within `wall_s` or the usual limit; on the inputs of `values`, else on those of the step.

        Raises the exceptions of `WorkerLine` if the guest does not answer.
        """
        if wall_s is None:
            wall_s = self._limits.call_s if first else self._limits.case_s
        values = values or self._given(step)
        arena, again = self._arena(step, values)
        shared = self._memory if isinstance(arena, DeviceArena) else None
        try:
            returned = self._link.ask(
                Call(
                    entry_point=self._entry_point,
                    case=step.case.name,
                    arguments=arena.arguments,
                    arena_bytes=arena.size_bytes,
                    changed_inputs=self._task.changed_inputs_of(step.case.case),
                    returns=self._task.returns,
                    hold=step.hold,
                    config=step.config,
                    poison=step.poison,
                    again=again,
                    parameters=self._parameters(step, values),
                    positional=self._positional(step, values),
                    no_gradients=step.case.no_gradients,
                    memory=None if shared is None else shared.place,
                    answers_at=rounded(arena.size_bytes),
                    zero_lanes=self.zero_lanes,
                    order=0 if self.in_order else step.order,
                ),
                Returned,
                wall_s=wall_s,
                cpu_s=self._limits.call_cpu_s if first else self._limits.case_cpu_s,
                descriptors=(arena.descriptor,) if isinstance(arena, Arena) else (),
            )
            outputs = (
                {} if shared is None else _copy_outputs(returned, shared.bytes, rounded(arena.size_bytes))
            )
            return Run(step, values, returned, arena.changed(), arena.broken_guards(), outputs)
        finally:
            if step.hold:
                self._kept_arena = arena
            else:
                arena.close()

    def close(self) -> None:
        """Free the arena and the shared memory of the last calls, if there are any. A closed caller may be closed again."""
        if self._kept_arena is not None:
            self._kept_arena.close()
            self._kept_arena = None
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def _positional(self, step: Step, given: Given) -> tuple[str, ...]:
        """Return the arguments to pass by position.

        Declared cases pass required arguments by position, as callers write it. Hidden cases pass all arguments by name,
        or, if they set a parameter that has a default, all by position.
        """
        if step.case.scalars:
            return tuple(itertools.takewhile(given.inputs.__contains__, self._signature.by_position))
        required = (name for name in self._signature.by_position if name not in self._signature.defaults)
        return () if step.case.hidden else tuple(itertools.takewhile(given.inputs.__contains__, required))

    def _parameters(self, step: Step, given: Given) -> tuple[str, ...]:
        """Return the inputs to pass as `torch.nn.Parameter`; never one that the task changes in place."""
        if not step.case.parameters:
            return ()
        return tuple(
            name
            for name, value in given.inputs.items()
            if isinstance(value, torch.Tensor)
            and value.is_floating_point()
            and name not in self._task.in_place
        )

    def _arena(self, step: Step, given: Given) -> tuple[Arena | DeviceArena, bool]:
        """Return memory with the inputs, and whether it is the memory of the previous call, with the same tensors."""
        arena, self._kept_arena = self._kept_arena, None
        if arena is not None:
            if step.again and arena.refilled(given.inputs):
                return arena, True
            arena.close()
        return self._device_arena(given) or Arena(given.inputs), False

    def _device_arena(self, given: Given) -> DeviceArena | None:
        """Return shared device memory with the inputs; `None` if nothing is shared or the device is full."""
        if not self._shares:
            return None
        answers = sum(
            rounded(truth.numel() * torch_dtype(dtype_of(output, given.case.case)).itemsize)
            for output, truth in zip(self._task.outputs_of(given.case.case), given.expected, strict=True)
        )
        wanted = rounded(lay_out(given.inputs)[1]) + answers
        try:
            if self._memory is None or self._memory.size_bytes < wanted:
                if self._memory is not None:
                    self._memory.close()
                self._memory = None
                self._memory = SharedMemory(wanted)
            return DeviceArena(given.inputs, self._memory)
        except NotShared:
            return None


def _copy_outputs(returned: Returned, memory: torch.Tensor, at: int) -> dict[int, torch.Tensor]:
    """Copy the outputs that lie in shared memory, all of them at or after byte `at`."""
    copies = {}
    for number, data in enumerate(returned.outputs):
        if data.at is None:
            continue
        size_bytes = size_of(data)
        if data.at < at or data.at != rounded(data.at) or data.at + size_bytes > memory.numel():
            raise GuestLied(f"no output of {size_bytes} bytes can stand at {data.at}")
        copies[number] = memory[data.at : data.at + size_bytes].clone()
    torch.cuda.synchronize()
    return copies
