"""Poison for memory that nobody wrote: reading it shows in the result."""

from __future__ import annotations

import torch

INTEGER = 0x5A
LEAST, MOST = 0x3C, 0x77
"""Bytes between them make finite numbers of every type that are not small, repeated."""


def poison(tensor: torch.Tensor) -> None:
    """NaN where the dtype has one, a large integer elsewhere."""
    if tensor.numel() == 0:
        return
    if tensor.is_floating_point() or tensor.is_complex():
        tensor.fill_(float("nan"))
        return
    # By the storage: bytes of a tensor without dimensions, or with other strides, cannot be viewed.
    memory = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    memory.fill_(INTEGER if tensor.dtype is not torch.bool else 1)


def other(memory: torch.Tensor, device: int) -> None:
    """What such memory holds on another device, of many: zeros on some, on the rest one byte throughout that makes finite numbers."""
    byte = 0 if device % 4 == 0 else LEAST + device // 4 % (MOST - LEAST + 1)
    whole = torch.empty(0, dtype=torch.uint8, device=memory.device).set_(memory.untyped_storage())
    whole.fill_(byte if memory.dtype is not torch.bool else byte & 1)
