"""The device on which this judge computes: the CPU, or the one GPU that its process sees. `take` sets it once, at the start."""

from __future__ import annotations

import os

import torch

from harness.wire import limits
from harness.wire.device import Device

from . import gpu

_ROUNDING = ("gfx942", "sm_8", "sm_9", "sm_10", "sm_12")
"""Prefixes of the targets with matrix units that may round float32 operands to TF32 (AMD: XF32)."""

THREADS = 4
"""CPU threads of a judge on a GPU: it copies and compares gigabytes."""
VAULT_BYTES = 256 << 20
"""On a CPU. Larger inputs of a case are drawn again for each use."""
MOST_VAULT_BYTES = 16 << 30
"""On a GPU, where one case takes one or two gigabytes."""
MOST_KEPT_BYTES = 4 << 30
CACHE_SHARE = 0.08
"""Share of a GPU's memory that torch's caches may keep between calls, in all judges together."""

_device = torch.device("cpu")
_sharers = 1
_tf32 = False


def take(device: Device | None, sharers: int = 1) -> None:
    """Compute on `device` from now on, whose memory `sharers` judges share; every judge starts on the CPU, which is `None`."""
    global _device, _sharers, _tf32
    if device is None:
        return
    gpu.start(device)
    _sharers = sharers
    _device = torch.device("cuda", 0)
    torch.set_num_threads(min(THREADS, len(os.sched_getaffinity(0))))
    _tf32 = (device.target or "").startswith(_ROUNDING)


def generator(seed: int) -> torch.Generator:
    """A random generator on the judge's device."""
    return torch.Generator(_device).manual_seed(seed)


def device() -> torch.device:
    """The judge's device."""
    return _device


def here(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on the judge's device; the same tensor if it is there already."""
    return tensor.to(_device)


def give_back(*, all_of_it: bool = False) -> None:
    """Empty torch's cache of device memory, if it holds more than `kept_bytes` or `all_of_it` is asked for.

    A comparison in float64 leaves tens of gigabytes in the cache, and guests and timers need this memory.
    """
    if not is_gpu():
        return
    limit_bytes = 0 if all_of_it else kept_bytes(_total_bytes(), _sharers)
    if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > limit_bytes:
        torch.cuda.empty_cache()


def settle() -> None:
    """Wait until nothing of this judge runs on its device."""
    if is_gpu():
        torch.cuda.synchronize()


def kept_bytes(total_bytes: int, sharers: int) -> int:
    """Bytes that torch's cache may keep in one of `sharers` judges, by the memory of the GPU."""
    return min(MOST_KEPT_BYTES, int(total_bytes * CACHE_SHARE) // sharers)


def graph_bytes() -> int:
    """Bytes of inputs and outputs that one timer may keep for a graph of calls."""
    return limits.graph_bytes(_total_bytes()) if is_gpu() else limits.MOST_GRAPH_BYTES


def vault_bytes() -> int:
    """Bytes of inputs and oracle outputs that a judge may keep on its device."""
    return vault_bytes_of(_total_bytes(), _sharers) if is_gpu() else VAULT_BYTES


def vault_bytes_of(total_bytes: int, sharers: int) -> int:
    """`vault_bytes` of one of `sharers` judges, by the memory of the GPU."""
    return min(MOST_VAULT_BYTES, int(total_bytes * limits.VAULT_SHARE) // sharers)


def _total_bytes() -> int:
    return int(torch.cuda.get_device_properties(_device).total_memory)


def is_gpu() -> bool:
    """Whether candidates run on a GPU."""
    return _device.type != "cpu"


def answer_bytes() -> int:
    """Largest answer of a guest; outputs of a GPU's cases are larger."""
    return limits.GPU_ANSWER_BYTES if is_gpu() else limits.ANSWER_BYTES


def has_tf32() -> bool:
    """Whether matrix units of the judged device may round float32 operands to TF32."""
    return _tf32
