"""Poison for memory that nobody wrote: reading it shows in the result."""

from __future__ import annotations

import torch

INTEGER = 0x5A


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
