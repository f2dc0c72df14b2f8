"""What a device refuses when a kernel that it could load is launched; said by a compiled kernel before there is a device.

Touches the internals of Triton's launcher (3.6 and 3.7).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from triton.runtime import _allocation

from harness.hardware.targets import hardware
from harness.wire.device import Target
from harness.worker.kit.binaries import read_registers

from .occupancy import occupancy


def check(compiled: Any, grid: tuple[int, int, int] | None, target: Target) -> None:
    """Raise as a launch on the target's reference device would: without the memory that the kernel needs, or where its
    programs have to run all at once and do not fit.
    """
    metadata = compiled.metadata
    programs = math.prod(grid) * getattr(metadata, "num_ctas", 1) if grid is not None else 0
    if programs <= 0:
        return
    if getattr(metadata, "launch_cooperative_grid", False):
        _check_residence(compiled, programs, target)
    size_bytes = getattr(metadata, "global_scratch_size", 0)
    if size_bytes:
        _check_allocator(size_bytes * programs, metadata.global_scratch_align)


def _check_residence(compiled: Any, programs: int, target: Target) -> None:
    facts, metadata = hardware(target), compiled.metadata
    binary = compiled.asm["hsaco" if target.backend == "hip" else "cubin"]
    a_unit = occupancy(
        target,
        waves_a_workgroup=metadata.num_warps,
        registers=read_registers(binary)[0],
        local_bytes=metadata.shared,
    ).workgroups
    most = facts.compute_units * a_unit
    if programs > most:
        raise RuntimeError(
            f"the launch is cooperative (launch_cooperative_grid) and has {programs} programs, of which {target.name} holds "
            f"{most} at once; launch that many at most and let each do the work of several"
        )


def _check_allocator(size_bytes: int, alignment: int) -> None:
    """Triton's own, where none was set, raises as it does on a device."""
    memory = _allocation._allocator.get()(size_bytes, alignment, 0)
    if not isinstance(memory, torch.Tensor) and not callable(getattr(memory, "data_ptr", None)):
        raise RuntimeError(
            "the allocator given to triton.set_allocator returns nothing with a `data_ptr`, and the kernel needs memory of it"
        )
    if isinstance(memory, torch.Tensor) and memory.nbytes < size_bytes:
        raise RuntimeError(
            f"the allocator given to triton.set_allocator returns {memory.nbytes} bytes, and the kernel needs {size_bytes}"
        )
