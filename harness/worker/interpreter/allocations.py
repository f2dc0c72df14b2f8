"""Memory that kernels may touch, and what is known of each of its bytes."""

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
    """Memory that kernels may touch: an input, or a storage that the candidate made."""

    span: Span
    holder: object
    """Keeps the memory alive, so that no address is ever that of two tensors."""
    reads: NDArray[np.uint8]
    writes: NDArray[np.uint8]
    """A byte for each byte: 1 when it was touched."""
    filled: NDArray[np.uint8] | None = None
    """A byte for each byte that the host filled, of memory that held nothing when it was made; `None`: all of it."""
    writers: NDArray[np.int32] | None = None
    """For each byte at which a store of the running launch began, its epoch (`races`); else 0."""
    adders: NDArray[np.int32] | None = None
    """Likewise for atomics; negative where that was one for its own program alone."""
    grain_bytes: int = 0
    """Size of all elements that were noted in these since the launch began, at whose first byte each is noted; 1: at every byte."""
    adders_before: NDArray[np.int32] | None = None
    """Likewise the last atomic of another program than that one's."""

    @property
    def changes(self) -> tuple[NDArray[np.int32] | None, ...]:
        """Epochs of stores and atomics."""
        return self.writers, self.adders, self.adders_before

    def begin_launch(self) -> None:
        """All that was written is there for everybody."""
        self.writers = self.adders = self.adders_before = None
        self.grain_bytes = 0

    def spread(self) -> None:
        """Notes every byte of what was noted at its first."""
        for epochs in self.changes:
            if epochs is not None:
                spread(epochs, self.grain_bytes)
        self.grain_bytes = 1
