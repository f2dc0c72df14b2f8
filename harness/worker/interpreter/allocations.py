"""Memory that kernels may touch, and notes about each of its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .places import spread


class Span(NamedTuple):
    """Addresses from `start` up to, not including, `end`."""

    start: int
    end: int


@dataclass(slots=True)
class Allocation:
    """Memory that kernels may touch: an input, or a storage that the candidate made. Notes have an entry for each byte."""

    span: Span
    holder: object
    """Keeps the memory alive, so that two tensors never have the same address."""
    reads: NDArray[np.uint8]
    """1 if the byte was read."""
    writes: NDArray[np.uint8]
    filled: NDArray[np.uint8] | None = None
    """1 if the host filled the byte of an allocation that was made empty; `None`: all bytes are filled."""
    writers: NDArray[np.int32] | None = None
    """Epoch (`races`) of the launch's last store that began at the byte; else 0."""
    adders: NDArray[np.int32] | None = None
    """Likewise for atomics; negative for an atomic with the scope of one program."""
    grain_bytes: int = 0
    """Size of all elements noted since the launch began, each at its first byte; 1: noted at every byte."""
    adders_before: NDArray[np.int32] | None = None
    """Epoch of the last atomic by another program than the program in `adders`."""

    @property
    def changes(self) -> tuple[NDArray[np.int32] | None, ...]:
        """Epochs of stores and atomics."""
        return self.writers, self.adders, self.adders_before

    def begin_launch(self) -> None:
        """Forget epochs: a new launch sees all earlier writes."""
        self.writers = self.adders = self.adders_before = None
        self.grain_bytes = 0

    def spread(self) -> None:
        """Note the epochs at every byte of an element instead of at its first byte."""
        for epochs in self.changes:
            if epochs is not None:
                spread(epochs, self.grain_bytes)
        self.grain_bytes = 1
