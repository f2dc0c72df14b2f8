"""Plays a launch tape, in a process that never saw the candidate's source.

Calls the driver directly: CUDA's driver API, or HIP's module API on AMD (not verified on AMD hardware).
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from harness.wire.calls.launch_tape import Address, Fill, Scalar, Tape, TapedKernel, TapedLaunch
from harness.wire.calls.tensors import INPUTS, TensorSpec
from harness.worker.kit import gpu

_CALLS = {
    "cuda": (
        "libcuda.so.1",
        "cuModuleLoadData",
        "cuModuleUnload",
        "cuModuleGetFunction",
        "cuFuncSetAttribute",
        "cuLaunchKernel",
    ),
    "hip": (
        "libamdhip64.so",
        "hipModuleLoadData",
        "hipModuleUnload",
        "hipModuleGetFunction",
        "hipFuncSetAttribute",
        "hipModuleLaunchKernel",
    ),
}
_MOST_DYNAMIC_SHARED = 8
"""Number of the function attribute, equal in both APIs."""
_STATIC_SHARED = 48 << 10
"""More shared memory needs a function attribute on NVIDIA before the launch."""
_TYPES: dict[str, type[Any]] = {
    "i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "u1": ctypes.c_uint8, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64, "fp32": ctypes.c_float, "f32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip
_SCRATCH = 2
"""Pointers that Triton's kernels take after their own arguments; null here, because no taped kernel uses them."""


class NotPlayed(Exception):
    """The driver refused a step of the tape."""


class LoadedTape:
    """One tape with its kernels loaded."""

    def __init__(self, tape: Tape) -> None:
        torch.cuda.synchronize()  # makes torch's context the current one
        self._tape = tape
        library, *names = _CALLS["hip" if torch.version.hip else "cuda"]
        loaded = ctypes.CDLL(library)
        self._load, self._unload, self._find, self._set, self._launch = (
            getattr(loaded, name) for name in names
        )
        self._modules: list[ctypes.c_void_p] = []
        self._functions = [self._loaded(kernel) for kernel in tape.kernels]
        self._blank: dict[int, torch.Tensor] | None = None
        """Poisoned buffers for the next play, from `ready`."""

    def ready(self) -> None:
        """Allocate poisoned buffers for the next play, outside its timing: no play sees an earlier play's results."""
        self._blank = {
            number: torch.full((size,), gpu.POISON, dtype=torch.uint8, device=gpu.HERE)
            for number, size in enumerate(self._tape.storages)
        }

    def __call__(self, inputs: torch.Tensor) -> Any:
        """Play the tape on the memory `inputs`; returns what the candidate's call would return."""
        if self._blank is None:
            self.ready()
        buffers, self._blank = self._blank or {}, None
        return self._play(inputs, buffers)

    def play(self, inputs: torch.Tensor) -> Any:
        """Play the tape on new buffers, as a call in a graph: buffers are reused as in the source's calls."""
        sizes = enumerate(self._tape.storages)
        buffers = {number: torch.empty(size, dtype=torch.uint8, device=gpu.HERE) for number, size in sizes}
        return self._play(inputs, buffers)

    def _play(self, inputs: torch.Tensor, buffers: dict[int, torch.Tensor]) -> Any:
        """Play the tape's fills and launches on the current stream; return the outputs.

        `buffers` are what the call allocated.
        """
        memories = {INPUTS: inputs, **buffers}
        stream = torch.cuda.current_stream().cuda_stream
        for step in self._tape.steps:
            if isinstance(step, Fill):
                memories[step.storage].view(getattr(torch, step.dtype)).fill_(step.value)
            else:
                self._start(step, memories, stream)
        parts = tuple(_output(output, memories) for output in self._tape.outputs)
        return parts[0] if self._tape.structure == "tensor" else parts

    def unload(self) -> None:
        """Unload the kernels; nothing may be played after this."""
        torch.cuda.synchronize()
        for module in self._modules:
            self._unload(module)
        self._modules.clear()

    def _loaded(self, kernel: TapedKernel) -> ctypes.c_void_p:
        """Load a kernel into the driver and return its function. Raises `NotPlayed` if the driver refuses it."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        _check(self._load(ctypes.byref(module), kernel.binary), "load a kernel")
        self._modules.append(module)
        _check(self._find(ctypes.byref(function), module, kernel.name.encode()), "find a kernel")
        if kernel.shared_bytes > _STATIC_SHARED:
            status = self._set(function, _MOST_DYNAMIC_SHARED, kernel.shared_bytes)
            _check(status, "give a kernel its shared memory")
        return function

    def _start(self, step: TapedLaunch, memories: dict[int, torch.Tensor], stream: int) -> None:
        """Start one launch of the tape on a stream, with addresses in `memories`. Raises if the driver refuses it."""
        kernel = self._tape.kernels[step.kernel]
        values = [_value(argument, memories) for argument in step.arguments]
        values += [ctypes.c_uint64(0)] * _SCRATCH
        places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        status = self._launch(
            self._functions[step.kernel],
            *step.grid,
            *(kernel.threads, 1, 1),
            kernel.shared_bytes,
            ctypes.c_void_p(stream),
            places,
            None,
        )
        _check(status, f"launch {kernel.name}")


def _value(argument: Address | Scalar, memories: dict[int, torch.Tensor]) -> Any:
    if isinstance(argument, Address):
        return ctypes.c_uint64(memories[argument.storage].data_ptr() + argument.offset_bytes)
    return _TYPES[argument.kind](argument.value)


def _output(view: TensorSpec, memories: dict[int, torch.Tensor]) -> torch.Tensor:
    dtype, memory = getattr(torch, view.dtype), memories[view.storage]
    whole = memory[: memory.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
    return whole.as_strided(view.shape, view.strides, whole.storage_offset() + view.offset)


def _check(status: int, action: str) -> None:
    if status != 0:
        raise NotPlayed(f"the driver does not {action}: it answers {status}")
