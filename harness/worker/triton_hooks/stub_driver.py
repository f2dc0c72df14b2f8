# ruff: noqa: ARG001, ARG005, D102 -- methods and arguments are those of Triton's own classes
"""Triton's driver without a device: kernels are compiled for a target and never launched."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import _allocation

from harness.hardware.targets import hardware
from harness.wire.device import Target
from harness.worker.kit import cuda_shim
from harness.worker.kit.binaries import read_registers
from harness.worker.kit.cuda_shim import GPU, REGISTERS_A_WORKGROUP, always, capability, threads_a_unit

BUS_BITS = 8192
"""Reported width of the memory bus; the reported memory clock is chosen so that their product is the true bandwidth."""


def install(target: Target) -> None:
    """Simulate `target` from here on, in torch and as Triton's active driver."""
    cuda_shim.install(target)
    triton.runtime.driver.set_active(StubDriver(target))
    for name, backend in backends.items():  # vLLM disables Triton unless exactly one is active
        backend.driver.is_active = staticmethod(
            always(name == ("amd" if target.backend == "hip" else "nvidia"))
        )


def gpu_target(target: Target) -> GPUTarget:
    """The target as Triton's `GPUTarget`."""
    if target.backend == "hip":
        return GPUTarget("hip", target.name, target.wave_size)
    return GPUTarget("cuda", int(target.name.removeprefix("sm_")), target.wave_size)


class StubDriver(DriverBase):  # type: ignore[misc]
    """Triton's driver for the simulated device. Kernels are compiled for it and never launched."""

    get_current_device = get_current_stream = always(0)
    set_current_device = clear_cache = always(None)
    get_active_torch_device = always(GPU)
    get_device_interface = always(torch.cuda)

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = gpu_target(target)
        self.get_device_capability = always(capability(target))
        self.utils = SimpleNamespace(
            get_device_properties=lambda device=0: driver_properties(target), load_binary=_load_binary
        )

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return self._target

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return triton.testing.do_bench  # type: ignore[no-any-return]

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.int32)

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        return always(None)


def _load_binary(name: str, binary: bytes, shared: int, device: int) -> tuple[None, int, int, int, int]:
    """Module, function, registers, spills and threads, as from the real driver. Persistent kernels size their grids by them."""
    registers, spills = read_registers(binary)
    return None, 0, registers, spills, 1024


def driver_properties(target: Target) -> dict[str, Any]:
    """Device properties as Triton's driver reports them, for the target's reference device."""
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
        "max_threads_per_sm": threads_a_unit(target),
        "cooperativeLaunch": 1,
    }


class StubKernel(SimpleNamespace):
    """A stub with the attributes of a compiled kernel. `stub[grid](...)` calls `launch(grid, ...)`."""

    launch: Callable[..., Any]

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.launch, grid)


def stub(target: Target, options: Mapping[str, Any], launch: Callable[..., Any]) -> StubKernel:
    """The return value of `kernel.warmup` and of a launch where no kernel is compiled.

    Persistent kernels size their grid by its numbers. Any grid is correct, so modest numbers suffice. No report shows them.
    """
    metadata = SimpleNamespace(
        shared=1024,
        num_warps=options.get("num_warps", 4),
        num_stages=options.get("num_stages", 2),
        num_ctas=1,
    )
    return StubKernel(
        launch=launch,
        n_regs=64,
        n_spills=0,
        n_max_threads=1024,
        metadata=metadata,
        asm={},
        function=0,
        num_warps=metadata.num_warps,
        shared=metadata.shared,
        target=gpu_target(target),
        _init_handles=lambda: None,
    )


def scratch_memory(size_bytes: int, alignment: int) -> Any:
    """Memory of the allocator that was given to Triton. Triton's default allocator raises, here and on a device."""
    return _allocation._allocator.get()(size_bytes, alignment, 0)
