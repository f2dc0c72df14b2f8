"""Checks a compiled launch against the target's limits and raises the device's own errors, without a device."""

from __future__ import annotations

import math
from typing import Any

import torch
from triton import OutOfResources

from harness.hardware.targets import hardware
from harness.wire.device import Target
from harness.worker.kit.binaries import read_registers
from harness.worker.triton_hooks.stub_driver import scratch_memory

from .occupancy import occupancy

MAX_THREADS = 1024
"""Threads of a workgroup, on every target."""
MAX_GRID = {"cuda": ((1 << 31) - 1, 65535, 65535)}
"""Programs along each axis of a grid; AMD limits threads instead."""
MAX_GRID_THREADS = (1 << 32) - 1
"""Threads of all workgroups along an axis, on AMD."""


def check(compiled: Any, grid: tuple[int, int, int] | None, target: Target) -> None:
    """Raise the error with which a launch on the target's reference device would fail, if any."""
    _check_size(compiled.metadata, grid, target)
    metadata = compiled.metadata
    programs = math.prod(grid) * getattr(metadata, "num_ctas", 1) if grid is not None else 0
    if programs <= 0:
        return
    if getattr(metadata, "launch_cooperative_grid", False):
        _check_residence(compiled, programs, target)
    size_bytes = getattr(metadata, "global_scratch_size", 0)
    if size_bytes:
        _check_allocator(size_bytes * programs, metadata.global_scratch_align)


def _check_size(metadata: Any, grid: tuple[int, int, int] | None, target: Target) -> None:
    """Raise a device's own error if a launch exceeds its limits: `OutOfResources` or, for the grid, `RuntimeError`.

    `grid`: `None` for a kernel that is not launched.
    """
    facts = hardware(target)
    if metadata.shared > facts.local_bytes_workgroup:
        raise OutOfResources(metadata.shared, facts.local_bytes_workgroup, "shared memory")
    threads = metadata.num_warps * target.wave_size
    if threads > MAX_THREADS:
        raise OutOfResources(threads, MAX_THREADS, "threads")
    for axis, programs in zip("xyz", grid or (), strict=False):
        most = MAX_GRID_THREADS // (threads if axis == "x" else 1)
        if target.backend in MAX_GRID:
            most = MAX_GRID[target.backend]["xyz".index(axis)]
        if programs > most:
            raise RuntimeError(
                f"the grid has {programs} programs along {axis}, {target.name} launches {most} at most"
            )


def _check_residence(compiled: Any, programs: int, target: Target) -> None:
    """Raise `RuntimeError` if the target cannot hold all programs of a cooperative launch at once, as such a launch needs."""
    metadata = compiled.metadata
    binary = compiled.asm["hsaco" if target.backend == "hip" else "cubin"]
    per_unit = occupancy(
        target,
        waves_a_workgroup=metadata.num_warps,
        registers=read_registers(binary)[0],
        local_bytes=metadata.shared,
    ).workgroups
    most = hardware(target).compute_units * per_unit
    if programs > most:
        raise RuntimeError(
            f"the launch is cooperative (launch_cooperative_grid) and has {programs} programs, of which {target.name} holds "
            f"{most} at once; launch that many at most and let each do the work of several"
        )


def _check_allocator(size_bytes: int, alignment: int) -> None:
    """Call the allocator for scratch memory."""
    memory = scratch_memory(size_bytes, alignment)
    if not isinstance(memory, torch.Tensor) and not callable(getattr(memory, "data_ptr", None)):
        raise RuntimeError(
            "the allocator given to triton.set_allocator returns nothing with a `data_ptr`, and the kernel needs memory of it"
        )
    if isinstance(memory, torch.Tensor) and memory.nbytes < size_bytes:
        raise RuntimeError(
            f"the allocator given to triton.set_allocator returns {memory.nbytes} bytes, and the kernel needs {size_bytes}"
        )
