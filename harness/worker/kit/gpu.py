"""The GPU of a judge, guest or timer process: start it, check it, view shared memory on it. On AMD unverified.

Also parts of torch as they were before the guest patched them, and what may be an address.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import torch

from harness.wire.calls.tensors import TensorSpec
from harness.wire.device import Device

HERE = torch.device("cuda", 0)
POISON = 0xFF
"""NaN as a float, -1 as an integer."""
_ACTIVE_COUNT, _CURRENT_FRAMES = threading.active_count, sys._current_frames
# Bound before foreign code is imported, so that its patches have no effect here.
NUMPY = torch.Tensor.numpy
"""`Tensor.numpy` before the guest counts its calls, for reads by the judge. Disable torch's modes around a call: they would
look up the patched method."""
LOWEST_ADDRESS = 1 << 32
"""Integers from here on may be addresses; smaller integers are numbers."""
ADDRESS_DTYPES = (torch.int64, torch.uint64)
"""Dtypes with elements that may be addresses."""
STORAGE_DEVICE: Callable[[torch.UntypedStorage], torch.device] = torch.UntypedStorage.device.__get__
"""The true device of a storage, also where `cuda_shim` patches the property."""


class WrongGpu(Exception):
    """The process sees a GPU that it was not given, or several: a bug of the harness."""


def start(device: Device) -> None:
    """Initialise the GPU runtime; raises `WrongGpu` unless the process sees exactly the GPU that it was given."""
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
    """PCI address without the function, as `0000:c1:00`; empty if this torch does not report it."""
    parts = [getattr(properties, f"pci_{name}_id", None) for name in ("domain", "bus", "device")]
    if any(part is None for part in parts):
        return ""
    domain, bus, slot = parts
    return f"{domain:04x}:{bus:02x}:{slot:02x}"


def running_threads() -> int:
    """Number of threads of this process besides the caller's. Counts only threads that ran Python: the driver has several."""
    return max(_ACTIVE_COUNT(), len(_CURRENT_FRAMES())) - 1


def view(memory: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """The tensor as the guest gets it. Its storage covers only its own part of `memory`."""
    dtype = getattr(torch, spec.dtype)
    if spec.storage_bytes == 0:
        return torch.empty_strided(spec.shape, spec.strides, dtype=dtype, device=HERE)
    start_at = memory.data_ptr() + spec.offset_bytes
    storage = torch._C._construct_storage_from_data_pointer(start_at, HERE, spec.storage_bytes)
    return torch.empty(0, dtype=dtype, device=HERE).set_(storage, spec.offset, spec.shape, spec.strides)


def hide_allocator() -> None:
    """Report every storage as resizable. The judge's storages, which torch did not allocate, would be recognised by that."""
    kind: Any = torch.UntypedStorage
    kind.resizable = lambda storage: True  # noqa: ARG005 -- replaces a method
