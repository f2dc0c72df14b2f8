# ruff: noqa: ARG001, ARG005, D102 -- stands in for others' interfaces, whose arguments and names are theirs
"""
Makes `cuda` mean the CPU in this process, and answers device questions as a target would.

Candidates are written for a GPU: they ask for `device="cuda"`, assert `x.is_cuda`, read properties of the device and
ask Triton for its driver. `install` lets all that work where there is no GPU. Tensors stay on the CPU; only what Python
is told of their device changes. It is for guests alone and is never taken back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
import triton
from torch.overrides import TorchFunctionMode
from torch.utils import _device
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from harness.hardware.product import KIB
from harness.hardware.targets import hardware
from harness.wire.device import Target

from . import storages
from .binaries import read_registers

CPU = torch.device("cpu")
GPU = torch.device("cuda", 0)

# Kernels branch on whether the version is set, and some on its major number.
ROCM_VERSION = "7.0.0"
CUDA_VERSION = "12.8"

REGISTERS_A_WORKGROUP = 65536
"""What CUDA and HIP tell alike; HIP leaves the accumulation registers out, and kernels that know double it."""

BUS_BITS = 8192
"""Width of the memory bus that is told; the clock told beside it makes the bandwidth right."""

_TENSOR: Any = torch.Tensor
_IS_CUDA = _TENSOR.is_cuda.__get__
_IS_CPU = _TENSOR.is_cpu.__get__
_DEVICE = _TENSOR.device.__get__
_HERE = (torch.Tensor.cuda, torch.Tensor.pin_memory)


def gpu_target(target: Target) -> GPUTarget:
    """The target in Triton's own words."""
    if target.backend == "hip":
        return GPUTarget("hip", target.name, target.wave_size)
    return GPUTarget("cuda", int(target.name.removeprefix("sm_")), target.wave_size)


def install(target: Target) -> None:
    """Answer for `target` from here on: torch's tensors and `torch.cuda`, and Triton's active driver."""
    _patch_torch(target)
    triton.runtime.driver.set_active(StubDriver(target))
    mode: Any = DeviceMode()
    mode.__enter__()


class DeviceMode(TorchFunctionMode):
    """Sends what is asked of the GPU to the CPU; tensors say that they are on the GPU."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """The result of `func` with devices replaced."""
        if func == _DEVICE:
            device = func(*args)
            return GPU if device == CPU else device
        if func == _IS_CUDA:
            return _DEVICE(args[0]) == CPU
        if func == _IS_CPU:
            return False
        if func is torch.Tensor.get_device:
            return 0
        if func in _HERE:
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


class Stream:
    """Stands for a stream: everything here runs at once and in order."""

    cuda_stream = 0
    device = GPU
    device_index = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def synchronize(self) -> None: ...

    def wait_stream(self, stream: Any) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def query(self) -> bool:
        return True

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record()
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *why: object) -> None: ...


class Event:
    """Stands for an event; the time between two is the host's, which is what really passed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()

    def synchronize(self) -> None: ...

    def wait(self, stream: Any = None) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds."""
        return (end._at - self._at) * 1e3


class StubDriver(DriverBase):  # type: ignore[misc]
    """Triton's driver for a device that is not there: it says which one, and launches nothing."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = gpu_target(target)
        self.utils = SimpleNamespace(
            get_device_properties=lambda device=0: driver_properties(target),
            load_binary=_load_binary,
        )

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_active_torch_device(self) -> torch.device:
        return GPU

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        major, minor = torch.cuda.get_device_capability()
        return major, minor

    def get_device_interface(self) -> Any:
        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return triton.testing.do_bench  # type: ignore[no-any-return]

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.int32)

    def clear_cache(self, cache: torch.Tensor) -> None: ...

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        """A launcher that launches nothing: kernels are compiled here, never run."""
        return lambda *args: None


def _load_binary(name: str, binary: bytes, shared: int, device: int) -> tuple[None, int, int, int, int]:
    """Module, function, registers, spills and threads, as the driver would: persistent kernels size grids by them."""
    registers, spills = read_registers(binary)
    return None, 0, registers, spills, 1024


def driver_properties(target: Target) -> dict[str, Any]:
    """What Triton's driver says of the device, for the target's reference device."""
    facts = hardware(target)
    return {
        "max_shared_mem": facts.local_bytes_workgroup,
        "max_num_regs": REGISTERS_A_WORKGROUP,
        "multiprocessor_count": facts.compute_units,
        "sm_clock_rate": facts.boost_mhz * 1000,
        "mem_clock_rate": int(facts.memory_bytes_per_s * 8 / (2 * BUS_BITS) / 1e3),
        "mem_bus_width": BUS_BITS,
        "arch": target.name,
        "warpSize": target.wave_size,
        "max_threads_per_sm": _threads(target),
        "cooperativeLaunch": 1,
    }


def _threads(target: Target) -> int:
    facts = hardware(target)
    return facts.max_waves * target.wave_size * (facts.simds if target.backend == "hip" else 1)


def _properties(target: Target) -> SimpleNamespace:
    """What `torch.cuda.get_device_properties` says, for the target's reference device."""
    facts = hardware(target)
    major, minor = _capability(target)
    amd = target.backend == "hip"
    return SimpleNamespace(
        name=("AMD Instinct " if amd else "NVIDIA ") + facts.name,
        major=major,
        minor=minor,
        gcnArchName=f"{target.name}:sramecc+:xnack-" if amd else "",
        total_memory=facts.memory_bytes,
        multi_processor_count=facts.compute_units,
        warp_size=target.wave_size,
        max_threads_per_multi_processor=_threads(target),
        max_threads_per_block=1024,
        regs_per_multiprocessor=driver_properties(target)["max_num_regs"],
        shared_memory_per_block=64 * KIB if amd else 48 * KIB,
        shared_memory_per_block_optin=facts.local_bytes_workgroup,
        shared_memory_per_multiprocessor=facts.local_bytes,
        L2_cache_size=facts.l2_bytes // facts.dies,
        is_integrated=0,
        is_multi_gpu_board=0,
    )


def _capability(target: Target) -> tuple[int, int]:
    """ROCm's torch reports gfx942 as (9, 4), gfx90a as (9, 0)."""
    if target.backend == "hip":
        digits = target.name.removeprefix("gfx")
        return int(digits[:-2]), int(digits[-2], 16)
    return divmod(int(target.name.removeprefix("sm_")), 10)


def _nothing() -> Callable[..., None]:
    """A function that does nothing, a new one each time: torch's tables of functions refuse one under two names."""

    def nothing(*args: Any, **kwargs: Any) -> None: ...

    return nothing


def _patch_torch(target: Target) -> None:
    cuda: Any = torch.cuda
    properties, capability = _properties(target), _capability(target)
    stream = Stream()

    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *args, **kwargs: True,
        "init": _nothing(),
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _nothing(),
        # `torch.cuda.device`, `device_of`, `_DeviceGuard` and `stream` stay torch's own and ask these.
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
        "Stream": Stream,
        "Event": Event,
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "set_stream": _nothing(),
        "synchronize": _nothing(),
        "empty_cache": _nothing(),
        "manual_seed": _nothing(),
        "manual_seed_all": _nothing(),
        "is_current_stream_capturing": lambda: False,
        "get_device_name": lambda device=None: properties.name,
        "get_device_capability": lambda device=None: capability,
        "get_device_properties": lambda device=None: properties,
        "mem_get_info": lambda device=None: (properties.total_memory, properties.total_memory),
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0,
        "max_memory_reserved": lambda device=None: 0,
        "reset_peak_memory_stats": _nothing(),
        "get_arch_list": lambda: [target.name],
    }
    for name, answer in answers.items():
        setattr(cuda, name, answer)
    accelerator: Any = torch.accelerator
    for name, answer in {
        "is_available": lambda: True,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "device_count": lambda: 1,
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "synchronize": _nothing(),
        "set_device_index": _nothing(),
        "set_device_idx": _nothing(),
        "current_stream": lambda device=None: stream,
        "set_stream": _nothing(),
    }.items():
        setattr(accelerator, name, answer)
    raw: Any = torch._C
    raw._cuda_getCurrentRawStream = lambda device=0: 0
    raw._get_accelerator = lambda check=None: torch.device("cuda")
    raw._accelerator_exchangeDevice = raw._accelerator_maybeExchangeDevice = lambda device: 0
    torch.get_device_module.cache_clear()
    _TENSOR.record_stream = _nothing()  # torch's own takes no stream but its own
    annotations: Any = torch.cuda.nvtx
    annotations._nvtx = SimpleNamespace(
        rangePushA=lambda text: 0,
        rangePop=lambda: 0,
        rangeStartA=lambda text: 0,
        rangeEnd=_nothing(),
        markA=_nothing(),
    )
    version: Any = torch.version
    version.hip = ROCM_VERSION if target.backend == "hip" else None
    version.cuda = None if target.backend == "hip" else CUDA_VERSION
    for name in ("disable", "allow_in_graph", "assume_constant_result"):
        setattr(torch.compiler, name, _as_it_is)
    _patch_default_device()
    _patch_storages()


def _as_it_is(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator for torch's compiler, which compiles nothing here: torch's own would import that compiler, seconds of work."""
    return function or _as_it_is


def _patch_storages() -> None:
    """Storages say that they are on the GPU, as their tensors do."""
    storages.hide_who_made_them()
    kind: Any = torch.UntypedStorage

    def device(storage: Any) -> torch.device:
        there = storages.DEVICE(storage)
        return GPU if there == CPU else there

    kind.device = property(device)
    kind.is_shared = lambda storage: True
    kind.clone = lambda storage: kind(storage.nbytes()).copy_(storage)


def _patch_default_device() -> None:
    """`torch.set_default_device("cuda")` and `with torch.device("cuda")` sit below our mode, so mend them at the root."""
    context: Any = _device.DeviceContext
    enter = context.__init__

    def init(self: Any, device: Any) -> None:
        enter(self, on_cpu(device))

    context.__init__ = init
