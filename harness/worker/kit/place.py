"""Where this judge computes: on the CPU, or on the one GPU that its process sees. Set once, before anything is judged."""

from __future__ import annotations

import os

import torch

from harness.wire import limits
from harness.wire.device import Device

from . import gpu

_ROUNDING = ("gfx942", "sm_8", "sm_9", "sm_10", "sm_12")
"""Targets whose matrix units may round float32 operands to TF32 (AMD calls it XF32)."""

THREADS = 4
"""Copying and comparing gigabytes is worth a few."""
VAULT_BYTES = 256 << 20
"""On a CPU; the inputs of one case may be larger and are then made anew."""
MOST_VAULT_BYTES = 16 << 30
"""At the sizes of a GPU one case takes a gigabyte or two."""
SHARES_OF_VAULT = 10
MOST_KEPT_BYTES = 4 << 30
SHARES_OF_CACHE = 24

_device = torch.device("cpu")
_tf32 = False


def take(device: Device | None) -> None:
    """Computes on `device` from here on; `None` is the CPU, on which every judge begins."""
    global _device, _tf32
    if device is None:
        return
    gpu.start(device)
    _device = torch.device("cuda", 0)
    torch.set_num_threads(min(THREADS, len(os.sched_getaffinity(0))))
    _tf32 = (device.target or "").startswith(_ROUNDING)


def generator(seed: int) -> torch.Generator:
    """For random values that are drawn where this judge computes."""
    made = torch.Generator(_device)
    made.manual_seed(seed)
    return made


def device() -> torch.device:
    """Where this judge computes."""
    return _device


def here(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor where this judge computes; itself, when it is there."""
    return tensor.to(_device)


def give_back(*, all_of_it: bool = False) -> None:
    """
    Lets other processes have the device memory that torch keeps for itself, where that is more than it may while they run.

    Comparing in float64 at a GPU's sizes leaves tens of gigabytes behind in torch's cache, which guests and timers need.
    """
    if not is_gpu():
        return
    most = 0 if all_of_it else kept_bytes(_total_bytes())
    if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > most:
        torch.cuda.empty_cache()


def kept_bytes(total_bytes: int) -> int:
    """What torch's cache may keep in a judge beside guests and timers, on a GPU with that much memory."""
    return min(MOST_KEPT_BYTES, total_bytes // SHARES_OF_CACHE)


def vault_bytes() -> int:
    """Inputs and the oracle's outputs that a judge may keep where it computes."""
    return vault_bytes_of(_total_bytes()) if is_gpu() else VAULT_BYTES


def vault_bytes_of(total_bytes: int) -> int:
    """On a GPU with that much memory, which other judges, guests and timers share."""
    return min(MOST_VAULT_BYTES, total_bytes // SHARES_OF_VAULT)


def _total_bytes() -> int:
    return int(torch.cuda.get_device_properties(_device).total_memory)


def is_gpu() -> bool:
    """Whether what candidates run on is a GPU."""
    return _device.type != "cpu"


def answer_bytes() -> int:
    """The most that a guest may answer at once: outputs at a GPU's sizes are larger."""
    return limits.GPU_ANSWER_BYTES if is_gpu() else limits.ANSWER_BYTES


def has_tf32() -> bool:
    """Whether float32 products of matrix units may round to TF32 on the device that is judged on."""
    return _tf32
