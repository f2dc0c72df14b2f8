"""Changes the timed inputs before each call or graph, so that no call sees values that an earlier call had.

The copies of the inputs hold only a few sets of values. Without this, a candidate could recognise an input and copy an
old answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

_COPY, _CLONE = torch.Tensor.copy_, torch.Tensor.clone
# Saved before foreign code is imported, which may patch torch later.


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
