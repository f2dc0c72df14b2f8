"""A GPU under a judge or a guest, by `torch.cuda`, which is CUDA's on NVIDIA and HIP's on AMD (there unverified)."""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
import triton
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources

from harness.device import Device
from harness.worker.interpreter.observing import running
from harness.worker.interpreter.traffic import Observation
from harness.worker.serving import arena
from harness.worker.serving.device_memory import NotShared, OpenedMemory, rounded
from harness.worker.serving.messages import (
    GPU_FAULT,
    NOT_COMPILED,
    OUT_OF_MEMORY,
    Argument,
    Call,
    Load,
    SharedAt,
)
from harness.worker.serving.warm import launch_once

from . import gpu_launches, storages
from .gpu_launches import GpuObservation

HERE = torch.device("cuda", 0)
POISON = 0xFF
"""NaN as a float, -1 as an integer."""
_SMALL_BLOCKS, _SMALL_BYTES = 32, 256 << 10
"""The caching allocator keeps small blocks apart."""
_ACTIVE_COUNT, _CURRENT_FRAMES = threading.active_count, sys._current_frames
# Bound before foreign code is imported; what it patches later is not what is called here.


class WrongGpu(Exception):
    """The process sees another GPU than it was given, or not it alone: our fault."""


def start(device: Device) -> None:
    """Initialises the runtime in this process and makes sure that it is on the GPU it was given."""
    torch.cuda.init()  # type: ignore[no-untyped-call]
    count = torch.cuda.device_count()
    if count != 1:
        raise WrongGpu(f"{count} GPUs are visible under {device.visibility}, not one")
    at = address(torch.cuda.get_device_properties(0))
    if at and device.address and at != device.address.rpartition(".")[0]:
        raise WrongGpu(
            f"the GPU at {at} is visible under {device.visibility}, not the one at {device.address}"
        )


def address(properties: Any) -> str:
    """Place on the PCI bus without the function, as `0000:c1:00`; empty where this torch does not tell."""
    parts = [getattr(properties, f"pci_{name}_id", None) for name in ("domain", "bus", "device")]
    if any(part is None for part in parts):
        return ""
    domain, bus, slot = parts
    return f"{domain:04x}:{bus:02x}:{slot:02x}"


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


def running_threads() -> int:
    """Of this process beside the caller's own. Only threads that ran Python count: the driver has several."""
    return max(_ACTIVE_COUNT(), len(_CURRENT_FRAMES())) - 1


def view(memory: torch.Tensor, argument: Argument) -> Any:
    """The argument, a tensor whose storage is its own part of `memory` and no more."""
    if not argument.is_tensor:
        return argument.scalar
    dtype = getattr(torch, argument.dtype)
    if argument.storage_bytes == 0:
        return torch.empty_strided(argument.shape, argument.strides, dtype=dtype, device=HERE)
    start_at = memory.data_ptr() + argument.offset_bytes
    storage = torch._C._construct_storage_from_data_pointer(start_at, HERE, argument.storage_bytes)
    return torch.empty(0, dtype=dtype, device=HERE).set_(
        storage, argument.storage_offset, argument.shape, argument.strides
    )


def _poison_free_memory(wanted_bytes: int) -> None:
    """What the caching allocator hands out next holds NaN: memory that nobody wrote shows, whoever allocates it."""
    free, _total = torch.cuda.mem_get_info()
    sizes = [_SMALL_BYTES] * _SMALL_BLOCKS + [min(2 * wanted_bytes + (64 << 20), free // 4)]
    blocks = [torch.full((size,), POISON, dtype=torch.uint8, device=HERE) for size in sizes]
    del blocks


def warm(device: Device) -> None:
    """All that takes long in a process's first moments on a GPU, ahead of the first request, which meets again what fails."""
    with suppress(Exception):
        start(device)
        build_driver()
        launch_once(HERE)


def build_driver() -> None:
    """Builds Triton's driver, before foreign code runs."""
    _name_driver_library()
    triton.runtime.driver.active.get_current_target()


def _name_driver_library() -> None:
    """Triton's NVIDIA driver asks `ldconfig` where `libcuda` is; the process has it mapped by now."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        file = line.rpartition(" ")[2]
        if "/libcuda.so" in file:
            # By the folder in which a library of that very name stands: what is mapped is the one with its version.
            folder = Path(file).parent
            if (folder / "libcuda.so.1").exists():
                os.environ.setdefault("TRITON_LIBCUDA_PATH", str(folder))
            return
