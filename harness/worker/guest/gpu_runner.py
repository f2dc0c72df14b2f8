# ruff: noqa: D102 -- the methods are documented in `Runner`
"""The GPU of a guest, by `torch.cuda`: CUDA on NVIDIA, HIP on AMD (unverified)."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import triton

from harness.wire.device import Device
from harness.wire.messages.guest import (
    EXCEPTION,
    GPU_FAULT,
    NOT_COMPILED,
    OUT_OF_MEMORY,
    Call,
    FailedKind,
    Load,
    SharedAt,
)
from harness.worker.interpreter.traffic import Observation, running
from harness.worker.kit import arena, cuda_shim, gpu
from harness.worker.kit.device_memory import NotShared, OpenedMemory, rounded
from harness.worker.kit.gpu import HERE, POISON, running_threads, view
from harness.worker.triton_hooks import warm

from . import gpu_launches
from .gpu_launches import GpuObservation
from .runner import Runner

_SMALL_BLOCKS, _SMALL_BYTES = 32, 256 << 10
"""The caching allocator has a separate pool for small blocks."""


class GpuRunner(Runner):
    """Runs calls on a guest's GPU. The judge trusts only the bytes that come back, which it compares."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._opened = OpenedMemory()
        self._answers: torch.Tensor | None = None
        self._answers_at = 0
        """Free room for outputs in the judge's memory, and the offset at which it begins."""
        self._shared: torch.Tensor | None = None
        self._inputs: torch.Tensor | None = None
        self._last_inputs: torch.Tensor | None = None
        self._arguments: dict[str, Any] = {}
        self._streams: dict[int, torch.cuda.Stream] = {}
        self._observation = GpuObservation()
        """Of the current call."""

    def prepare(self, load: Load) -> None:
        """Start the GPU and install the watch over launches and streams; from now on `torch.compile` does nothing."""
        warm.start_gpu(self._device)
        gpu.hide_allocator()
        library: Any = torch
        library.compile = cuda_shim.undecorated
        gpu_launches.install(self._device.kind)
        self._watch_streams()

    def reach(self, memory: SharedAt) -> str:
        """Open the judge's memory and read it; return why that fails, or nothing."""
        try:
            self._opened.at(memory).sum()
        except NotShared as error:
            return str(error)
        return ""

    def open(self, descriptor: int | None, call: Call) -> dict[str, Any]:
        """Return the arguments of a call, copied from the judge's memory or from the arena of `descriptor`, which is closed.

        All lie in one buffer with the judge's guard zones. A call that repeats the one before gets the same tensors with new
        values; any other call gets new memory, after free memory was filled with poison.
        """
        # All inputs lie in one buffer of the device, with the judge's guard zones around each tensor.
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
            self._arguments = arena.open_each(call.arguments, lambda spec: view(inputs, spec))
        return dict(self._arguments)

    @contextmanager
    def observe(self, inputs: Mapping[str, torch.Tensor]) -> Iterator[Observation]:
        self._observation = GpuObservation(home=torch.cuda.current_stream().cuda_stream)
        with running(self._observation):
            yield self._observation

    def settle(self, outputs: Sequence[torch.Tensor]) -> str:
        """Wait for the work of a call; return in words what still ran when a caller of it would go on, or nothing.

        A caller waits only for the current stream. Work on other streams, and outputs that still change, come too late.
        """
        # A caller waits only for the stream of its call; work on other streams must have joined that stream by then.
        torch.cuda.current_stream().synchronize()
        early = [arena.memory_of(output).clone() for output in outputs]
        torch.cuda.current_stream().synchronize()
        busy = sum(not stream.query() for stream in self._streams.values())
        torch.cuda.synchronize()
        # Not after a call that raised: a fault has lost the context, and it is the candidate's.
        self._observation.look_behind()
        if busy:
            return f"work on {busy} other stream{'s' if busy > 1 else ''} still ran"
        late = any(
            not torch.equal(arena.memory_of(output), before)
            for output, before in zip(outputs, early, strict=True)
        )
        return "an output still changed" if late else ""

    def deliver(self, output: torch.Tensor) -> int | None:
        """Copy an output to the next free place of the judge's memory; return the place, `None` if there is no room."""
        memory = arena.memory_of(output)
        if self._answers is None or memory.numel() > self._answers.numel():
            return None
        at = self._answers_at
        self._answers[: memory.numel()].copy_(memory)
        used = rounded(memory.numel())
        self._answers, self._answers_at = self._answers[used:], at + used
        return at

    def give_back(self) -> None:
        """Write the inputs back to the judge's memory, with what the call changed, and wait until that is done."""
        if self._shared is not None and self._inputs is not None:
            self._shared.copy_(self._inputs)
        torch.cuda.synchronize()
        # A returned tensor may be an input, and the guest examines it again after the next call.
        self._shared, self._last_inputs = None, self._inputs

    def kind_of(self, error: BaseException) -> FailedKind:
        """Return the kind of an error of the candidate's call. It waits for the GPU, which fails after a fault of a kernel."""
        if isinstance(error, torch.OutOfMemoryError):
            return OUT_OF_MEMORY
        if isinstance(error, (triton.CompilationError, triton.OutOfResources)):
            return NOT_COMPILED
        try:
            torch.cuda.synchronize()  # fails after a fault, because the context is lost
        except RuntimeError:
            return GPU_FAULT
        return EXCEPTION

    def threads(self) -> int:
        return running_threads()

    def _watch_streams(self) -> None:
        """Note every stream that the candidate makes, so that `settle` can look for work on it."""
        make: Any = torch.cuda.Stream.__new__

        def made(kind: type[torch.cuda.Stream], *args: Any, **named: Any) -> torch.cuda.Stream:
            stream: torch.cuda.Stream = make(kind, *args, **named)
            self._streams[stream.cuda_stream] = stream
            return stream

        torch.cuda.Stream.__new__ = staticmethod(made)  # type: ignore[method-assign, assignment]


def _poison_free_memory(wanted_bytes: int) -> None:
    """Fill the memory that the caching allocator hands out next with NaN, so that reads before a write show."""
    free, _total = torch.cuda.mem_get_info()
    sizes = [_SMALL_BYTES] * _SMALL_BLOCKS + [min(2 * wanted_bytes + (64 << 20), free // 4)]
    blocks = [torch.full((size,), POISON, dtype=torch.uint8, device=HERE) for size in sizes]
    del blocks
