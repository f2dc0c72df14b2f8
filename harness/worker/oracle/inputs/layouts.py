"""Layouts: the same values in storages of tensors that were sliced, transposed or padded."""

from __future__ import annotations

from collections.abc import Callable

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
    return _LAYOUTS[layout](tensor)


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _beginning_at(tensor: torch.Tensor, elements: int) -> torch.Tensor:
    """Copy the tensor to this offset; its storage ends one row after it."""
    storage = _unused(tensor, (elements + tensor.numel() + tensor.shape[-1],))
    view = storage[elements : elements + tensor.numel()].view(tensor.shape)
    view.copy_(tensor)
    return view


def _offset(tensor: torch.Tensor) -> torch.Tensor:
    return _beginning_at(tensor, 3 * ALIGNMENT // tensor.element_size())


def _unaligned(tensor: torch.Tensor) -> torch.Tensor:
    return _beginning_at(tensor, ALIGNMENT // tensor.element_size() + 1)


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor


def _padded(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() < 2:
        return tensor
    *rows, columns = tensor.shape
    view = _unused(tensor, (*rows, columns + PADDING))[..., :columns]
    view.copy_(tensor)
    return view


def _stepped(tensor: torch.Tensor) -> torch.Tensor:
    *rows, columns = tensor.shape
    view = _unused(tensor, (*rows, 2 * columns))[..., ::2]
    view.copy_(tensor)
    return view


def _unused(like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor with every byte 0xFF: NaN as a float, -1 as an integer."""
    filled = torch.empty(shape, dtype=like.dtype, device=like.device)
    filled.view(-1).view(torch.uint8).fill_(0xFF)
    return filled


_LAYOUTS: dict[Layout, Callable[[torch.Tensor], torch.Tensor]] = {
    Layout.DENSE: _dense,
    Layout.OFFSET: _offset,
    Layout.UNALIGNED: _unaligned,
    Layout.TRANSPOSED: _transposed,
    Layout.PADDED: _padded,
    Layout.STEPPED: _stepped,
}
