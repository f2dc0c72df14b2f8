"""Layouts: the same values in storages of tensors that were sliced, transposed or padded."""

from __future__ import annotations

import torch

from harness.cases.judged_case import Layout

ALIGNMENT = 16
"""Bytes: the alignment that allocators give and vector accesses need."""
PADDING = 3
"""Elements between rows."""


def laid_out(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Return the tensor's values in the layout, in a new storage; gaps hold NaN or -1, which no kernel should read.

    A tensor with too few dimensions for the layout is returned unchanged.
    """
    if tensor.dim() == 0 or tensor.numel() == 0:
        return tensor
    *rows, columns = tensor.shape
    match layout:
        case Layout.OFFSET:
            return _beginning_at(tensor, 3 * ALIGNMENT // tensor.element_size())
        case Layout.UNALIGNED:
            return _beginning_at(tensor, ALIGNMENT // tensor.element_size() + 1)
        case Layout.TRANSPOSED if rows:
            return tensor.mT.contiguous().mT
        case Layout.PADDED if rows:
            return _unused(tensor, (*rows, columns + PADDING))[..., :columns].copy_(tensor)
        case Layout.STEPPED:
            return _unused(tensor, (*rows, 2 * columns))[..., ::2].copy_(tensor)
        case _:
            return tensor


def _beginning_at(tensor: torch.Tensor, elements: int) -> torch.Tensor:
    """Copy the tensor to this offset; its storage ends one row after it."""
    storage = _unused(tensor, (elements + tensor.numel() + tensor.shape[-1],))
    return storage[elements : elements + tensor.numel()].view(tensor.shape).copy_(tensor)


def _unused(like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor with every byte 0xFF: NaN as a float, -1 as an integer."""
    filled = torch.empty(shape, dtype=like.dtype, device=like.device)
    filled.view(-1).view(torch.uint8).fill_(0xFF)
    return filled
