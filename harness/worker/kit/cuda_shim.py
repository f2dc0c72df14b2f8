# ruff: noqa: ARG001, ARG005, D102 -- methods and arguments are those of torch's own classes
"""Simulates a GPU in a process without one: `cuda` means the CPU, and torch describes the target's device.

A candidate is written for a GPU: it asks for `device="cuda"`, asserts `x.is_cuda` and reads device properties. After
`install` all that works on the CPU. Tensors stay in host memory; only the device that Python sees changes. `stub_driver`
does the same for Triton. Used by guests and compile workers; a process cannot undo it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _device

from harness.hardware.product import KIB
from harness.hardware.targets import hardware
from harness.wire.device import Target

from .gpu import STORAGE_DEVICE, hide_allocator

CPU = torch.device("cpu")
GPU = torch.device("cuda", 0)

# Kernels branch on whether the version is set, and some on its major number.
ROCM_VERSION = "7.0.0"
CUDA_VERSION = "12.8"

REGISTERS_A_WORKGROUP = 65536
"""Reported for CUDA and HIP alike. HIP leaves out the accumulation registers; kernels that know this double the number."""

_TENSOR: Any = torch.Tensor
_IS_CUDA = _TENSOR.is_cuda.__get__
_IS_CPU = _TENSOR.is_cpu.__get__
_DEVICE = _TENSOR.device.__get__
_MOVES_TO_GPU = (torch.Tensor.cuda, torch.Tensor.pin_memory)


def install(target: Target) -> None:
    """Simulate `target` from here on, in torch's tensors and in `torch.cuda`."""
    _patch_torch(target)
    mode: Any = DeviceMode()
    mode.__enter__()


class DeviceMode(TorchFunctionMode):
    """Runs operations for the GPU on the CPU. Tensors report the GPU as their device."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run a function of torch on the CPU where the candidate asks for the GPU, and answer questions about devices with the
        GPU.
        """
        if func == _DEVICE:
            device = func(*args)
            return GPU if device == CPU else device
        if func == _IS_CUDA:
            return _DEVICE(args[0]) == CPU
        if func == _IS_CPU:
            return False
        if func is torch.Tensor.get_device:
            return 0
        if func in _MOVES_TO_GPU:
            return args[0]
        named = dict(kwargs or {})
        named.pop("pin_memory", None)
        if "device" in named:
            named["device"] = on_cpu(named["device"])
        if func is torch.Tensor.to:
            args = tuple(on_cpu(arg) for arg in args)
        elif any(isinstance(arg, torch.device) for arg in args):
            args = tuple(on_cpu(arg) if isinstance(arg, torch.device) else arg for arg in args)
        return func(*args, **named)


def on_cpu(device: Any) -> Any:
    """`device`, or the CPU when it names a GPU in any of the ways torch allows (also a bare index)."""
    if isinstance(device, torch.device):
        return CPU if device.type == "cuda" else device
    if isinstance(device, str):
        return CPU if device == "cuda" or device.startswith("cuda:") else device
    if isinstance(device, int) and not isinstance(device, bool):
        return CPU
    return device


def _empty_strided(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device=GPU)


def always(answer: Any) -> Callable[..., Any]:
    """A new function that returns `answer`. New each time: torch's tables of functions refuse one function with two names."""
    return lambda *args, **kwargs: answer


class Stream:
    """Replaces `torch.cuda.Stream`; all work here runs at once and in order."""

    cuda_stream = 0
    device = GPU
    device_index = 0
    synchronize = wait_stream = wait_event = __exit__ = always(None)
    query = always(True)

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record()
        return event

    def __enter__(self) -> Stream:
        return self


class Event:
    """Replaces `torch.cuda.Event`; measures host time."""

    synchronize = wait = always(None)
    query = always(True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._recorded_s = 0.0

    def record(self, stream: Any = None) -> None:
        self._recorded_s = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds."""
        return (end._recorded_s - self._recorded_s) * 1e3


class Generator(torch.Generator):
    """Replaces `torch.Generator`: no mode sees its constructor."""

    def __new__(cls, device: Any = CPU) -> Generator:
        return super().__new__(cls, device=on_cpu(device))  # type: ignore[call-arg]


def threads_a_unit(target: Target) -> int:
    """Most threads of a compute unit."""
    facts = hardware(target)
    return facts.max_waves * target.wave_size * (facts.simds if target.backend == "hip" else 1)


def _properties(target: Target) -> SimpleNamespace:
    """Device properties as `torch.cuda.get_device_properties` reports them, for the target's reference device."""
    facts = hardware(target)
    major, minor = capability(target)
    amd = target.backend == "hip"
    return SimpleNamespace(
        name=("AMD Instinct " if amd else "NVIDIA ") + facts.name,
        major=major,
        minor=minor,
        gcnArchName=f"{target.name}:sramecc+:xnack-" if amd else "",
        total_memory=facts.memory_bytes,
        multi_processor_count=facts.compute_units,
        warp_size=target.wave_size,
        max_threads_per_multi_processor=threads_a_unit(target),
        max_threads_per_block=1024,
        regs_per_multiprocessor=REGISTERS_A_WORKGROUP,
        shared_memory_per_block=64 * KIB if amd else 48 * KIB,
        shared_memory_per_block_optin=facts.local_bytes_workgroup,
        shared_memory_per_multiprocessor=facts.local_bytes,
        L2_cache_size=facts.l2_bytes // facts.dies,
        is_integrated=0,
        is_multi_gpu_board=0,
    )


def capability(target: Target) -> tuple[int, int]:
    """ROCm's torch reports gfx942 as (9, 4), gfx90a as (9, 0)."""
    if target.backend == "hip":
        digits = target.name.removeprefix("gfx")
        return int(digits[:-2]), int(digits[-2], 16)
    return divmod(int(target.name.removeprefix("sm_")), 10)


def _patch_torch(target: Target) -> None:
    """Make torch describe a simulated GPU of the target, for the rest of the process: properties, streams, events, generators.

    Functions that would act on a GPU do nothing. `torch.compile` returns its function unchanged.
    """
    properties = _properties(target)
    stream = Stream()
    gpu = torch.device("cuda")
    no_results = ("init", "set_device", "set_stream", "synchronize", "empty_cache", "reset_peak_memory_stats")  # fmt: skip
    # `torch.cuda.device`, `device_of`, `_DeviceGuard` and `stream` stay torch's own; they call `_exchange_device`.
    zeros = ("current_device", "_exchange_device", "_maybe_exchange_device", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")  # fmt: skip
    torch.Generator = Generator  # type: ignore[misc]
    _patch_functions(torch.cuda, dict.fromkeys(no_results))
    _patch_functions(torch.cuda, dict.fromkeys(zeros, 0))
    _patch_functions(
        torch.cuda,
        {
            "is_available": True,
            "is_initialized": True,
            "is_bf16_supported": True,
            "is_current_stream_capturing": False,
            "device_count": 1,
            "current_stream": stream,
            "default_stream": stream,
            "get_device_name": properties.name,
            "get_device_capability": capability(target),
            "get_device_properties": properties,
            "mem_get_info": (properties.total_memory, properties.total_memory),
            "get_arch_list": [target.name],
        },
    )
    cuda: Any = torch.cuda
    cuda.Stream, cuda.Event = Stream, Event
    generator = GpuGenerator()
    cuda.default_generators = (generator,)
    cuda.get_rng_state, cuda.set_rng_state = generator.get_state, generator.set_state
    cuda.manual_seed = cuda.manual_seed_all = generator.manual_seed
    cuda.initial_seed = generator.initial_seed
    _patch_functions(
        torch.accelerator,
        {
            "is_available": True,
            "current_accelerator": gpu,
            "device_count": 1,
            "current_device_index": 0,
            "current_device_idx": 0,
            "current_stream": stream,
        }
        | dict.fromkeys(("synchronize", "set_device_index", "set_device_idx", "set_stream")),
    )
    raw: Any = torch._C
    raw._cuda_getCurrentRawStream = always(0)
    raw._dynamo.guards._empty_strided_cuda = _empty_strided  # code that `torch.compile` wrote calls it
    raw._get_accelerator = always(gpu)
    raw._accelerator_exchangeDevice = raw._accelerator_maybeExchangeDevice = always(0)
    torch.get_device_module.cache_clear()
    _TENSOR.record_stream = always(None)  # torch's own accepts only torch's streams
    cuda.nvtx._nvtx = SimpleNamespace(
        rangePushA=always(0),
        rangePop=always(0),
        rangeStartA=always(0),
        rangeEnd=always(None),
        markA=always(None),
    )
    version: Any = torch.version
    version.hip = ROCM_VERSION if target.backend == "hip" else None
    version.cuda = None if target.backend == "hip" else CUDA_VERSION
    for name in ("disable", "allow_in_graph", "assume_constant_result"):
        setattr(torch.compiler, name, undecorated)
    library: Any = torch
    library.compile = undecorated
    _patch_default_device()
    _patch_storages()
    _patch_backward()


def _patch_functions(module: ModuleType, answers: Mapping[str, Any]) -> None:
    """Replace each named function of the module by a function that always returns the given answer."""
    for name, answer in answers.items():
        setattr(module, name, always(answer))


def undecorated(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Replaces `torch.compile` and `torch.compiler`'s decorators: the judge sees plain functions' operators. No import."""
    return function or undecorated


def _patch_storages() -> None:
    """Make storages report the GPU as their device, as tensors do, for the rest of the process."""
    hide_allocator()
    kind: Any = torch.UntypedStorage

    def device(storage: Any) -> torch.device:
        device = STORAGE_DEVICE(storage)
        return GPU if device == CPU else device

    kind.device = property(device)
    kind.is_shared = lambda storage: True
    kind.clone = lambda storage: kind(storage.nbytes()).copy_(storage)


def _patch_backward() -> None:
    """Run backward functions under `DeviceMode` too, for the rest of the process: torch leaves the mode while it
    differentiates.
    """
    autograd: Any = torch.autograd
    run = autograd._engine_run_backward

    def run_here(*args: Any, **named: Any) -> Any:
        with DeviceMode():
            return run(*args, **named)

    autograd._engine_run_backward = run_here


def _patch_default_device() -> None:
    """Redirect `torch.set_default_device("cuda")` and `with torch.device("cuda")`, which `DeviceMode` cannot see."""
    context: Any = _device.DeviceContext
    enter = context.__init__

    def init(self: Any, device: Any) -> None:
        enter(self, on_cpu(device))

    context.__init__ = init


class GpuGenerator:
    """A member of `torch.cuda.default_generators`. Kernels read its state, a seed and an offset; it draws nothing itself.

    Its state has 16 bytes, as a GPU's Philox generator has: code of the FlagGems kind takes both words from it, and sets the
    offset that follows.
    """

    device = torch.device("cuda", 0)

    def __init__(self) -> None:
        self._words = np.zeros(2, np.int64)

    def get_state(self, *_: Any) -> torch.Tensor:
        """Return a copy of the state, 16 bytes in the host's memory."""
        return torch.from_numpy(self._words.copy().view(np.uint8))

    def set_state(self, state: torch.Tensor, *_: Any) -> GpuGenerator:
        """Take the seed and the offset from 16 bytes."""
        self._words = state.numpy().view(np.int64).copy()
        return self

    def manual_seed(self, seed: int) -> GpuGenerator:
        """Set the seed, and the offset to 0."""
        self._words = np.array([seed % (1 << 64), 0], np.uint64).view(np.int64)
        return self

    def initial_seed(self) -> int:
        """Return the seed."""
        return int(self._words[0])
