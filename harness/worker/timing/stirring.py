"""
Values that no call was timed with before, in the very tensors of the calls that are timed.

Copies of the inputs hold few sets of values by turns, so that whoever looks at all of an input may know it again and copy an answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_ARANGE: Callable[..., torch.Tensor] = torch.arange
_RANDINT: Callable[..., torch.Tensor] = torch.randint
_GENERATOR = torch.Generator
# Bound before foreign code is imported; what it patches later is not what is called here.


class Stirrer:
    """Before each call one element of each row of its fractional inputs is its neighbour's value; afterwards all is as it was."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._random: torch.Generator | None = None
        """From the first call on: its device is a GPU, which not every process may touch."""
        self._stirred: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        """Elements, places among them, and what stood there."""
        self._rows: dict[tuple[int, int], torch.Tensor] = {}

    def stir(self, arguments: Mapping[str, Any]) -> None:
        """For the next call, with these arguments; what was stirred for the last one is put back."""
        self.settle()
        if self._random is None:
            self._random = _GENERATOR(self._device).manual_seed(int.from_bytes(os.urandom(7)))
        for value in arguments.values():
            if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
                continue
            if value.is_contiguous():
                columns = value.shape[-1] if value.dim() else 1
                elements = value.detach().view(-1).view(_INTEGERS[value.element_size()])
                self._one_a_row(elements, columns)

    def settle(self) -> None:
        """Puts back what is stirred."""
        for elements, places, before in self._stirred:
            elements[places] = before
        self._stirred.clear()

    def _one_a_row(self, elements: torch.Tensor, columns: int) -> None:
        rows = elements.numel() // columns
        if (rows, columns) not in self._rows:
            self._rows[rows, columns] = _ARANGE(rows, device=self._device) * columns
        places = _RANDINT(columns, (rows,), device=self._device, generator=self._random)
        places += self._rows[rows, columns]
        self._stirred.append((elements, places, elements[places]))
        elements[places] = elements[(places + 1) % elements.numel()]
