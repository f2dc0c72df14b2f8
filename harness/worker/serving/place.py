"""Where this judge computes: on the CPU, or on the one GPU that its process sees. Set once, before anything is judged."""

from __future__ import annotations

import os

import torch

from harness import limits
from harness.device import Device
from harness.worker.guest import gpu

_ROUNDING = ("gfx942", "sm_8", "sm_9", "sm_10", "sm_12")
"""Targets whose matrix units may round float32 operands to TF32 (AMD calls it XF32)."""

THREADS = 4
"""Copying and comparing gigabytes is worth a few."""

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


def give_back(*, beyond_bytes: int = 0) -> None:
    """
    Lets other processes have the device memory that torch keeps for itself, where that is more than `beyond_bytes`.

    Comparing in float64 at a GPU's sizes leaves tens of gigabytes behind in torch's cache, which guests and timers need.
    """
    if is_gpu() and torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > beyond_bytes:
        torch.cuda.empty_cache()


def is_gpu() -> bool:
    """Whether what candidates run on is a GPU."""
    return _device.type != "cpu"


def answer_bytes() -> int:
    """The most that a guest may answer at once: outputs at a GPU's sizes are larger."""
    return limits.GPU_ANSWER_BYTES if is_gpu() else limits.ANSWER_BYTES


def has_tf32() -> bool:
    """Whether float32 products of matrix units may round to TF32 on the device that is judged on."""
    return _tf32
