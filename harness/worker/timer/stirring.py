"""
Changes the timed inputs before each call, so that no call sees values that an earlier call had.

The copies of the inputs hold only a few sets of values. Without this, a candidate could recognise an input and copy an
old answer.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch

_WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_COPY, _CLONE = torch.Tensor.copy_, torch.Tensor.clone
# Saved before foreign code is imported, which may patch torch later.


class Stirrer:
    """Before a call, overwrites one random column of each floating-point input with the next column; restores it later."""

    def __init__(self, sets: Sequence[Mapping[str, Any]] = ()) -> None:
        """`sets`: the arguments of the calls. Only contiguous tensors are stirred."""
        self._random = random.SystemRandom()
        self._inputs = [
            [_rows(value) for value in arguments.values() if _is_stirred(value)] for arguments in sets
        ]
        self._stirred: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Overwritten columns and their saved values."""

    def stir(self, number: int) -> None:
        """Restore the last set of arguments and stir the set `number` for the next call."""
        self.settle()
        for rows in self._inputs[number]:
            columns = rows.shape[1]
            index = self._random.randrange(columns)
            column = rows[:, index]
            self._stirred.append((column, _CLONE(column)))
            _COPY(column, rows[:, (index + 1) % columns])

    def settle(self) -> None:
        """Restore all overwritten columns."""
        for column, saved in self._stirred:
            _COPY(column, saved)
        self._stirred.clear()


def _is_stirred(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return False
    return value.is_contiguous() and value.numel() > 1 and value.element_size() in _WHOLE


def _rows(value: torch.Tensor) -> torch.Tensor:
    """The elements as integers, which every device can copy, in rows of at least two elements."""
    columns = value.shape[-1] if value.shape[-1] > 1 else value.numel()
    return value.detach().view(_WHOLE[value.element_size()]).view(-1, columns)
