"""Inputs that differ from others in a part in the middle alone, where an answer kept by a fingerprint of a few values is wrong; inputs that are one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import torch

from harness.worker.kit.arena import Value


def with_other_middle(inputs: Mapping[str, Value], others: Mapping[str, Value]) -> dict[str, Value]:
    """The inputs, in each tensor of fractions the middle row (of one dimension: the middle element) taken from `others`.

    Rows are drawn alike, so a row of another draw is as good. Not so where they hang together: tensors that are sorted
    or symmetric stay as they are, and so do whole numbers, which may be places in something.
    """
    return {name: _mixed(value, others[name]) for name, value in inputs.items()}


def alike(inputs: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Pairs of inputs that could be one tensor: of fractions, as whole numbers may be places in something, with one shape and dtype."""
    tensors = [
        (name, value)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    ]
    return [
        (one, other)
        for (one, left), (other, right) in itertools.combinations(tensors, 2)
        if left.shape == right.shape and left.dtype == right.dtype
    ]


def _mixed(value: Value, other: Value) -> Value:
    if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
        return value
    if not value.is_floating_point() or value.dim() == 0 or value.numel() == 0 or _hangs_together(value):
        return value
    rows = value.reshape(-1, value.shape[-1]) if value.dim() > 1 else value.reshape(-1, 1)
    middle = rows.shape[0] // 2
    mixed = rows.clone()
    mixed[middle] = other.reshape(rows.shape)[middle]
    return mixed.reshape(value.shape)


def _hangs_together(value: torch.Tensor) -> bool:
    wide = value.double()
    if value.dim() >= 2 and value.shape[-1] == value.shape[-2] and torch.equal(wide, wide.mT):
        return True
    steps = wide.diff(dim=-1)
    return value.shape[-1] > 2 and bool((steps >= 0).all() or (steps <= 0).all())
