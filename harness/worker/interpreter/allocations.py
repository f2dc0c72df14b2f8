"""Memory that kernels may touch, and notes about each of its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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
