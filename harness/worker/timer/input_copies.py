"""Copies of a case's inputs in one block of device memory, so that one launch of torch changes all of them.

The copies hold only a few sets of values. A candidate could recognise an input and copy an old answer, so inputs are changed
before each call or graph, and no call sees values that an earlier call had.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from harness.wire.calls.tensors import Arguments, TensorSpec
from harness.worker.kit import gpu

_ALIGNMENT = 512
"""Torch's own alignment of allocations: launches compiled for one copy fit all copies."""
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_COPY, _CLONE = torch.Tensor.copy_, torch.Tensor.clone
# Saved before foreign code is imported, which may patch torch later.


class InputCopies:
    """`count` copies of the inputs; `self.arguments[n]` are the arguments of a call on copy `n`."""

    def __init__(self, described: Arguments, arena_bytes: int, count: int) -> None:
        distance = arena_bytes + -arena_bytes % _ALIGNMENT
        self._block = torch.empty(count, distance, dtype=torch.uint8, device=gpu.HERE)
        self._described = described
        self.memory = [copy[:arena_bytes] for copy in self._block]
        self.arguments: list[dict[str, Any]] = [
            {
                name: gpu.view(memory, value) if isinstance(value, TensorSpec) else value
                for name, value in described.items()
            }
            for memory in self.memory
        ]

    def __len__(self) -> int:
        return len(self.memory)

    def fill(self, source: torch.Tensor, first: int = 0, step: int = 1) -> None:
        """Write an arena's bytes into every `step`-th copy."""
        self._block[first::step, : source.numel()].copy_(source)
        torch.cuda.synchronize()

    def fractional_rows(self, number: int | None = None) -> list[torch.Tensor]:
        """Return each floating-point input of one copy, or of all copies, as integers in rows: (copies, rows, columns).

        Only contiguous tensors of two elements or more.
        """
        block = self._block if number is None else self._block[number : number + 1]
        return [
            _rows(block, spec, self.arguments[0][name])
            for name, spec in self._described.items()
            if isinstance(spec, TensorSpec) and _is_fractional(self.arguments[0][name])
        ]


def _is_fractional(value: torch.Tensor) -> bool:
    if not value.is_floating_point():
        return False
    return value.is_contiguous() and value.numel() > 1 and value.element_size() in _INTEGERS


def _rows(block: torch.Tensor, spec: TensorSpec, value: torch.Tensor) -> torch.Tensor:
    """The elements as integers, which every device can copy, in rows of at least two elements."""
    size = value.element_size()
    columns = value.shape[-1] if value.shape[-1] > 1 else value.numel()
    start = spec.offset_bytes + spec.offset * size
    elements = block[:, start : start + value.numel() * size].view(_INTEGERS[size])
    return elements.view(len(block), -1, columns)


class Stirrer:
    """Overwrites one random column of each input with the next column, and restores it later."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()
        self._stirred: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Overwritten columns and their saved values."""

    def stir(self, inputs: Sequence[torch.Tensor]) -> None:
        """Restore what was stirred before and stir these inputs, each of shape (..., columns)."""
        self.settle()
        for rows in inputs:
            columns = rows.shape[-1]
            index = self._random.randrange(columns)
            column = rows[..., index]
            self._stirred.append((column, _CLONE(column)))
            _COPY(column, rows[..., (index + 1) % columns])

    def settle(self) -> None:
        """Restore all overwritten columns."""
        for column, saved in self._stirred:
            _COPY(column, saved)
        self._stirred.clear()
