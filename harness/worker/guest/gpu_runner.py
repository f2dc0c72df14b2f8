"""A guest's GPU, by `torch.cuda`: CUDA on NVIDIA, HIP on AMD (there unverified)."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources

from harness.wire.device import Device
from harness.wire.guest_messages import GPU_FAULT, NOT_COMPILED, OUT_OF_MEMORY, Call, Load, SharedAt
from harness.worker.interpreter.observing import running
from harness.worker.interpreter.traffic import Observation
from harness.worker.kit import arena, storages
from harness.worker.kit.device_memory import NotShared, OpenedMemory, rounded
from harness.worker.kit.gpu import HERE, POISON, build_driver, running_threads, start, view

from . import gpu_launches
from .gpu_launches import GpuObservation

_SMALL_BLOCKS, _SMALL_BYTES = 32, 256 << 10
"""The caching allocator keeps small blocks apart."""


class GpuRunner:
    """A guest's GPU: see `Runner`. What it tells is evidence, but for the bytes that come back and are compared."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._opened = OpenedMemory()
        self._answers: torch.Tensor | None = None
        """Where outputs may be put, with the place in the judge's memory at which it begins."""
        self._answers_at = 0
        self._shared: torch.Tensor | None = None
        self._inputs: torch.Tensor | None = None
        self._last_inputs: torch.Tensor | None = None
        self._arguments: dict[str, Any] = {}
        self._streams: dict[int, torch.cuda.Stream] = {}

    def prepare(self, load: Load) -> None:
        """See `Runner`."""
        start(self._device)
        build_driver()
        storages.hide_who_made_them()
        gpu_launches.install(self._device.kind)
        self._watch_streams()

    def reach(self, memory: SharedAt) -> str:
        """See `Runner`."""
        try:
            self._opened.at(memory).sum()
        except NotShared as error:
            return str(error)
        return ""

    def open(self, descriptor: int | None, call: Call) -> dict[str, Any]:
        """See `Runner`. All inputs lie in one buffer of the device, with the judge's guard zones around each."""
        self._answers, self._answers_at = None, call.answers_at
        if call.memory is not None:
            memory = self._opened.at(call.memory)
            self._shared, self._answers = memory[: call.arena_bytes], memory[call.answers_at :]
        else:
            assert descriptor is not None
            self._shared = torch.frombuffer(mmap.mmap(descriptor, call.arena_bytes), dtype=torch.uint8)
            os.close(descriptor)
        if call.again and self._last_inputs is not None:
            self._inputs = self._last_inputs.copy_(self._shared)
        else:
            _poison_free_memory(call.arena_bytes)
            self._inputs = torch.empty(call.arena_bytes, dtype=torch.uint8, device=HERE).copy_(self._shared)
            inputs = self._inputs
            self._arguments = arena.open_each(call.arguments, lambda one: view(inputs, one))
        return dict(self._arguments)

    @contextmanager
    def observe(self, inputs: Mapping[str, torch.Tensor]) -> Iterator[Observation]:
        """See `Runner`."""
        observation = GpuObservation(home=torch.cuda.current_stream().cuda_stream)
        with running(observation):
            yield observation
            observation.look_behind()

    def settle(self, outputs: Sequence[torch.Tensor]) -> str:
        """See `Runner`. A caller waits for the stream that it called on; all else must be joined to that by then."""
        torch.cuda.current_stream().synchronize()
        early = [arena.memory_of(output).clone() for output in outputs]
        torch.cuda.current_stream().synchronize()
        busy = sum(not stream.query() for stream in self._streams.values())
        torch.cuda.synchronize()
        if busy:
            return f"work on {busy} other stream{'s' if busy > 1 else ''} still ran"
        late = any(
            not torch.equal(arena.memory_of(output), before)
            for output, before in zip(outputs, early, strict=True)
        )
        return "an output still changed" if late else ""

    def deliver(self, output: torch.Tensor) -> int | None:
        """See `Runner`."""
        memory = arena.memory_of(output)
        if self._answers is None or memory.numel() > self._answers.numel():
            return None
        at = self._answers_at
        self._answers[: memory.numel()].copy_(memory)
        used = rounded(memory.numel())
        self._answers, self._answers_at = self._answers[used:], at + used
        return at

    def give_back(self) -> None:
        """See `Runner`."""
        if self._shared is not None and self._inputs is not None:
            self._shared.copy_(self._inputs)
        torch.cuda.synchronize()
        # What was returned may be an input, and is looked at once more after the next call.
        self._shared, self._last_inputs = None, self._inputs

    def kind_of(self, error: BaseException) -> str:
        """See `Runner`. After a fault the context is lost: nothing on it succeeds again."""
        if isinstance(error, torch.OutOfMemoryError):
            return OUT_OF_MEMORY
        if isinstance(error, (CompilationError, OutOfResources)):
            return NOT_COMPILED
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return GPU_FAULT
        return "exception"

    def threads(self) -> int:
        """See `Runner`."""
        return running_threads()

    def _watch_streams(self) -> None:
        make: Any = torch.cuda.Stream.__new__

        def made(kind: type[torch.cuda.Stream], *args: Any, **named: Any) -> torch.cuda.Stream:
            stream: torch.cuda.Stream = make(kind, *args, **named)
            self._streams[stream.cuda_stream] = stream
            return stream

        torch.cuda.Stream.__new__ = staticmethod(made)  # type: ignore[method-assign, assignment]


def _poison_free_memory(wanted_bytes: int) -> None:
    """What the caching allocator hands out next holds NaN: memory that nobody wrote shows, whoever allocates it."""
    free, _total = torch.cuda.mem_get_info()
    sizes = [_SMALL_BYTES] * _SMALL_BLOCKS + [min(2 * wanted_bytes + (64 << 20), free // 4)]
    blocks = [torch.full((size,), POISON, dtype=torch.uint8, device=HERE) for size in sizes]
    del blocks
