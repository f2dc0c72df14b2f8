"""Replaces the default random generator of a GPU. Kernels read its state: a seed and an offset."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

_WORDS = 1 << 64


class GpuGenerator:
    """A member of `torch.cuda.default_generators`. It draws nothing itself.

    Its state has 16 bytes, as a GPU's Philox generator has: code of the FlagGems kind takes both words from it, and sets the
    offset that follows.
    """

    device = torch.device("cuda", 0)

    def __init__(self) -> None:
        self._words = np.zeros(2, np.int64)

    def get_state(self, *_: Any) -> torch.Tensor:
        """Return a copy of the state, 16 bytes in the host's memory."""
        return torch.from_numpy(self._words.copy().view(np.uint8))

    def set_state(self, state: torch.Tensor, *_: Any) -> GpuGenerator:
        """Take the seed and the offset from 16 bytes."""
        self._words = state.numpy().view(np.int64).copy()
        return self

    def manual_seed(self, seed: int) -> GpuGenerator:
        """Set the seed, and the offset to 0."""
        self._words = np.array([seed % _WORDS, 0], np.uint64).view(np.int64)
        return self

    def initial_seed(self) -> int:
        """Return the seed."""
        return int(self._words[0])
