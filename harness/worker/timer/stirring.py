"""
Values that no call was timed with before, in the very tensors of the calls that are timed.

Copies of the inputs hold few sets of values by turns, so that whoever looks at all of an input may know it again and copy an answer.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch

_WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_COPY, _CLONE = torch.Tensor.copy_, torch.Tensor.clone
# Bound before foreign code is imported; what it patches later is not what is called here.


class Stirrer:
    """Before each call one column of each fractional input is its neighbour, so that every row is another one; afterwards all is as it was."""

    def __init__(self, sets: Sequence[Mapping[str, Any]] = ()) -> None:
        """`sets`: the arguments of calls; those that are contiguous are stirred."""
        self._random = random.SystemRandom()
        self._inputs = [[_rows(value) for value in one.values() if _is_stirred(value)] for one in sets]
        self._stirred: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Columns, and what stood there."""

    def stir(self, number: int) -> None:
        """For the next call, with this set of arguments; what was stirred for the last one is put back."""
        self.settle()
        for rows in self._inputs[number]:
            columns = rows.shape[1]
            at = self._random.randrange(columns)
            column = rows[:, at]
            self._stirred.append((column, _CLONE(column)))
            _COPY(column, rows[:, (at + 1) % columns])

    def settle(self) -> None:
        """Puts back what is stirred."""
        for column, before in self._stirred:
            _COPY(column, before)
        self._stirred.clear()


def _is_stirred(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return False
    return value.is_contiguous() and value.numel() > 1 and value.element_size() in _WHOLE


def _rows(value: torch.Tensor) -> torch.Tensor:
    """The elements as whole numbers, which any device can move, in rows that have a neighbour to each element."""
    columns = value.shape[-1] if value.shape[-1] > 1 else value.numel()
    return value.detach().view(_WHOLE[value.element_size()]).view(-1, columns)
