"""One call of a candidate's entry point, from the judge's side: the one place where inputs go out and outputs come in."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import torch

from harness.cases.call_plan import Step
from harness.wire.guest_messages import Call, OutputData, Returned
from harness.wire.limits import TimeLimits
from harness.wire.verifier_messages import ReplayedOutput
from harness.worker.kit import place
from harness.worker.kit.arena import Arena, lay_out
from harness.worker.kit.device_memory import DeviceArena, NotShared, SharedMemory, rounded
from suites.dtypes import ITEM_BYTES
from suites.signature import parse_signature
from suites.task import Case, Task
from suites.tolerances import dtype_of

from .digests import digest
from .guest_link import GuestLied, GuestLink
from .problem import Inputs, torch_dtype
from .vault import Given


@dataclass
class Run:
    """One call of the entry point, seen from the judge."""

    step: Step
    given: Given
    returned: Returned
    changed_inputs: tuple[str, ...]
    """Proof: the judge compared the bytes."""
    broken_guards: tuple[str, ...]
    brought: dict[int, torch.Tensor] = field(default_factory=dict)
    """Bytes of the outputs that came in shared memory, by their places: copies that no guest reaches."""

    @property
    def case(self) -> Case:
        """The configuration that was run."""
        return self.given.case.case

    @property
    def inputs(self) -> Inputs:
        """What the entry point was given, as the judge keeps it."""
        return self.given.inputs

    @cached_property
    def answer(self) -> bytes:
        """Equal for calls whose outputs are equal bit for bit."""
        whole = hashlib.blake2b()
        for number, output in enumerate(self.returned.outputs):
            whole.update(digest(self.brought[number]) if number in self.brought else output.data)
        return whole.digest()

    def output(self, number: int) -> torch.Tensor:
        """One output where the judge computes; bytes that do not fill the shape are a lie (`GuestLied`)."""
        data = self.returned.outputs[number]
        if number not in self.brought:
            return place.here(tensor_of(data))
        return self.brought[number].view(torch_dtype(data.dtype)).reshape(data.shape)


def tensor_of(data: OutputData | ReplayedOutput) -> torch.Tensor:
    """The guest's bytes as a tensor of the judge's; bytes that do not fill the shape are a lie."""
    size_bytes = size_of(data)
    if len(data.data) != size_bytes:
        raise GuestLied(f"{len(data.data)} bytes for {data.dtype}{list(data.shape)}")
    if size_bytes == 0:
        return torch.empty(data.shape, dtype=torch_dtype(data.dtype))
    return torch.frombuffer(bytearray(data.data), dtype=torch_dtype(data.dtype)).reshape(data.shape)


def size_of(data: OutputData | ReplayedOutput) -> int:
    """Bytes of an output by its shape; no shape at all is a lie."""
    if data.dtype not in ITEM_BYTES:
        raise GuestLied(f"no output has the dtype {data.dtype!r}")
    if min(data.shape, default=0) < 0:
        raise GuestLied(f"no output has the shape {list(data.shape)}")
    count = torch_dtype(data.dtype).itemsize
    for size in data.shape:
        count *= size
    return count


class Caller:
    """Calls one guest. Close it when the last call is made: it may hold the memory of one."""

    def __init__(
        self,
        link: GuestLink,
        task: Task,
        limits: TimeLimits,
        given: Callable[[Step], Given],
        wants_record: Callable[[Step], bool],
    ) -> None:
        self._link = link
        self._entry_point = task.entry_points[0].name
        self._limits = limits
        self._given = given
        self._wants_record = wants_record
        self._task = task
        self._signature = parse_signature(task.entry_points[0].signature)
        self._held: Arena | DeviceArena | None = None
        self._shares = False
        self._memory: SharedMemory | None = None
        """What the guest reaches too, inputs first, then outputs; larger with the first case that needs more."""

    def try_sharing(self) -> SharedMemory | None:
        """Memory for the guest to try; `None` where there is no device, or no way to share its memory."""
        if place.is_gpu():
            with suppress(NotShared):
                self._memory = SharedMemory(1)
        return self._memory

    def share(self) -> None:
        """The guest reaches it."""
        self._shares = self._memory is not None

    def call(self, step: Step, *, first: bool = False) -> Run:
        """What came of one step; the ways in which a guest can fail to answer are `GuestLink`'s exceptions."""
        given = self._given(step)
        arena, again = self._arena(step, given)
        shared = self._memory if isinstance(arena, DeviceArena) else None
        try:
            returned = self._link.ask(
                lambda nonce: Call(
                    nonce=nonce,
                    entry_point=self._entry_point,
                    case=step.case.name,
                    arguments=arena.arguments,
                    arena_bytes=arena.size_bytes,
                    hold=step.hold,
                    config=step.config,
                    poison=step.poison,
                    again=again,
                    parameters=self._parameters(step, given),
                    positional=self._positional(step, given),
                    no_gradients=step.case.no_gradients,
                    memory=None if shared is None else shared.place,
                    answers_at=rounded(arena.size_bytes),
                    record=self._wants_record(step),
                ),
                Returned,
                wall_s=self._limits.call_s if first else self._limits.case_s,
                cpu_s=self._limits.call_cpu_s if first else self._limits.case_cpu_s,
                descriptors=(arena.descriptor,) if isinstance(arena, Arena) else (),
            )
            brought = {} if shared is None else _brought(returned, shared.bytes, rounded(arena.size_bytes))
            return Run(step, given, returned, arena.changed(), arena.broken_guards(), brought)
        finally:
            if step.hold:
                self._held = arena
            else:
                arena.close()

    def close(self) -> None:
        """Lets go what is held."""
        if self._held is not None:
            self._held.close()
            self._held = None
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def _positional(self, step: Step, given: Given) -> tuple[str, ...]:
        """What is given by its place: in declared cases what has no default, as callers write it, in those with another parameter all;
        the other hidden cases name everything, as callers may.
        """
        if step.case.scalars:
            return tuple(itertools.takewhile(given.inputs.__contains__, self._signature.parameters))
        return () if step.case.hidden else self._signature.required

    def _parameters(self, step: Step, given: Given) -> tuple[str, ...]:
        """Names of the inputs that are given as parameters; what a task wants changed is none."""
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
        """Memory with the inputs in it, and whether it is that of the call before, under the very same tensors."""
        held, self._held = self._held, None
        if held is not None:
            if step.again and held.refilled(given.inputs):
                return held, True
            held.close()
        return self._device_arena(given) or Arena(given.inputs), False

    def _device_arena(self, given: Given) -> DeviceArena | None:
        """`None` where nothing is shared, or there is no room for it."""
        if not self._shares:
            return None
        answers = sum(
            rounded(truth.numel() * torch_dtype(dtype_of(output, given.case.case)).itemsize)
            for output, truth in zip(self._task.outputs, given.expected, strict=True)
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


def _brought(returned: Returned, memory: torch.Tensor, at: int) -> dict[int, torch.Tensor]:
    """Copies of the outputs that stand in shared memory, from place `at` on."""
    found = {}
    for number, data in enumerate(returned.outputs):
        if data.at is None:
            continue
        size_bytes = size_of(data)
        if data.at < at or data.at != rounded(data.at) or data.at + size_bytes > memory.numel():
            raise GuestLied(f"no output of {size_bytes} bytes can stand at {data.at}")
        found[number] = memory[data.at : data.at + size_bytes].clone()
    torch.cuda.synchronize()
    return found
