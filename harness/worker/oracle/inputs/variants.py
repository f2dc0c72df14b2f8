"""Variants of drawn inputs: the same values in other layouts; inputs that differ only in the middle; two inputs as one tensor.

Layouts are those of tensors that were sliced, transposed or padded. The other variants find cached answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import torch

from harness.cases.judged_case import Layout
from harness.worker.kit.arena import Value

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


def with_other_middle(inputs: Mapping[str, Value], donors: Mapping[str, Value]) -> dict[str, Value]:
    """Return the inputs with the middle row of each floating-point tensor (the middle element of a vector) from `donors`.

    Such a row is as valid as the one that it replaces, since all rows are drawn alike. Sorted and symmetric tensors stay
    unchanged, and so do integers, which may be indices.
    """
    return {name: _with_middle(value, donors[name]) for name, value in inputs.items()}


def alike(inputs: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Return pairs of inputs that could be the same tensor: floating point, same shape, strides and dtype."""
    tensors = [
        (name, value)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    ]
    return [
        (first, second)
        for (first, left), (second, right) in itertools.combinations(tensors, 2)
        if (left.shape, left.stride(), left.dtype) == (right.shape, right.stride(), right.dtype)
    ]


def _with_middle(value: Value, donor: Value) -> Value:
    """Return a tensor in which only the middle row is that of `donor`, in the layout of `value`.

    Integers, scalars, and tensors with a structure that a row of others would break, are returned unchanged.
    """
    if not isinstance(value, torch.Tensor) or not isinstance(donor, torch.Tensor):
        return value
    if not value.is_floating_point() or value.dim() == 0 or value.numel() == 0 or _has_structure(value):
        return value
    rows = value.reshape(-1, value.shape[-1]) if value.dim() > 1 else value.reshape(-1, 1)
    middle = rows.shape[0] // 2
    mixed = rows.clone()
    mixed[middle] = donor.reshape(rows.shape)[middle]
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device).copy_(
        mixed.reshape(value.shape)
    )


def _has_structure(value: torch.Tensor) -> bool:
    """True for a tensor that looks made, not drawn: a symmetric matrix, or values that only rise or only fall along rows."""
    wide = value.double()
    if value.dim() >= 2 and value.shape[-1] == value.shape[-2] and torch.equal(wide, wide.mT):
        return True
    steps = wide.diff(dim=-1)
    return value.shape[-1] > 2 and bool((steps >= 0).all() or (steps <= 0).all())
