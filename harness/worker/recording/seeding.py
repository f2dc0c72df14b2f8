"""Draws all random numbers of a script from one seed, even if the script sets seeds of its own."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from harness.cases.seeds import derive

_NUMPY_SEEDS = 1 << 32
_numpy_seed = np.random.seed
_drawn: list[int | None] = [0]
"""The seed of the current run; `None`: seeds of the script are used as they are."""
_gpu = SimpleNamespace(seed=torch.cuda.manual_seed_all)
"""`seed` sets the GPU's seed; `install` takes the function that is in place then."""


def set_seed(seed: int) -> None:
    """Set torch's seed on the CPU and on the GPU. `torch.manual_seed` would call the GPU's replaced function."""
    torch.default_generator.manual_seed(seed)
    _gpu.seed(seed)


def keep_seeds() -> None:
    """Let the script's own seeds count, until the next `draw_from`."""
    _drawn[0] = None


def draw_from(seed: int) -> None:
    """Seed every generator. `install` must have been called."""
    _drawn[0] = seed
    random.Random.seed(random._inst, seed)
    _numpy_seed(seed % _NUMPY_SEEDS)
    set_seed(seed)


def install() -> None:
    """Replace the functions that set seeds, once a process. A seed of the script then selects a seed of ours."""
    _gpu.seed = torch.cuda.manual_seed_all
    for module in (torch, torch.random, torch.cuda):
        _replace(module, "manual_seed")
    _replace(torch.cuda, "manual_seed_all")
    _replace(random, "seed")
    _replace(np.random, "seed", below=_NUMPY_SEEDS)
    _replace(np.random, "default_rng")

    class Generator(torch.Generator):
        def manual_seed(self, seed: int) -> Any:
            return super().manual_seed(_derived(seed))

    torch.Generator = Generator  # type: ignore[misc]

    class RandomState(np.random.RandomState):
        def __init__(self, seed: Any = None) -> None:
            super().__init__(_derived(seed) % _NUMPY_SEEDS)

        def seed(self, seed: Any = None) -> None:
            super().seed(_derived(seed) % _NUMPY_SEEDS)

    np.random.RandomState = RandomState  # type: ignore[misc]


def _derived(own: Any) -> int:
    return int(own) if _drawn[0] is None else derive(_drawn[0], "seed of the script", str(own))


def _replace(module: Any, name: str, *, below: int = 1 << 63) -> None:
    """Let a function that sets a seed set one that is derived from the script's seed and the given seed."""
    original = getattr(module, name)

    def set_own_seed(seed: Any = None, *_: Any, **__: Any) -> Any:
        return original(_derived(seed) % below)

    setattr(module, name, set_own_seed)
