"""
Values that no call was timed with before, in the very tensors of the calls that are timed.

Copies of the inputs hold few sets of values by turns, so that whoever looks at all of an input may know it again and copy an answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

MOST_ROWS = 1024
"""Of each input; of more, as many are drawn."""
_ARANGE: Callable[..., torch.Tensor] = torch.arange
_CAT: Callable[..., torch.Tensor] = torch.cat
_GENERATOR = torch.Generator
_RANDINT: Callable[..., torch.Tensor] = torch.randint
# Bound before foreign code is imported; what it patches later is not what is called here.


class Stirrer:
    """Before each call one element of each row of its fractional inputs is its neighbour's value; afterwards all is as it was."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._random: torch.Generator | None = None
        """From the first call on: its device is a GPU, which not every process may touch."""
        self._drawn: list[tuple[torch.Tensor, torch.Tensor]] = []
        """For each call the bytes that become others, and those that they become."""
        self._stirred: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None
        """The memory, places in it, and what stood there."""

    def draw(self, arguments: Mapping[str, Any], memory: torch.Tensor, calls: int) -> None:
        """For so many calls, with arguments that lie in `memory` or, the same way, in another copy of it."""
        if self._random is None:
            self._random = _GENERATOR(self._device).manual_seed(int.from_bytes(os.urandom(7)))
        places: list[torch.Tensor] = []
        beside: list[torch.Tensor] = []
        for value in arguments.values():
            if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
                continue
            if value.is_contiguous():
                elements = self._elements(value, calls)
                first = value.data_ptr() - memory.data_ptr()
                width = value.element_size()
                inside = _ARANGE(width, device=self._device)
                for kind, chosen in ((places, elements), (beside, (elements + 1) % value.numel())):
                    kind.append((first + chosen[:, :, None] * width + inside).flatten(1))
        self._drawn = list(zip(_CAT(places, 1), _CAT(beside, 1), strict=True)) if places else []

    def stir(self, memory: torch.Tensor) -> None:
        """For the next call, whose arguments lie there; what was stirred for the last one is put back."""
        self.settle()
        if self._drawn:
            places, beside = self._drawn.pop()
            self._stirred = memory, places, memory[places]
            memory[places] = memory[beside]

    def settle(self) -> None:
        """Puts back what is stirred."""
        if self._stirred is not None:
            memory, places, before = self._stirred
            memory[places] = before
            self._stirred = None

    def _elements(self, value: torch.Tensor, calls: int) -> torch.Tensor:
        """Numbers of elements, of shape (calls, rows)."""
        columns = value.shape[-1] if value.dim() else 1
        rows = value.numel() // columns
        draw = (min(rows, MOST_ROWS),)
        place = _RANDINT(columns, (calls, *draw), device=self._device, generator=self._random)
        if rows <= MOST_ROWS:
            return place + _ARANGE(rows, device=self._device) * columns
        return place + columns * _RANDINT(rows, (calls, *draw), device=self._device, generator=self._random)
