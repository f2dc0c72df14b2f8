"""Draws all random numbers of a script from one seed, also where the script sets seeds of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from harness.cases.seeds import derive

_NUMPY_SEEDS = 1 << 32


def draw_from(seed: int) -> None:
    """Seed every generator, and replace functions that set seeds: each own seed of the script gives a seed of ours."""
    random.seed(seed)
    np.random.seed(seed % _NUMPY_SEEDS)  # noqa: NPY002 -- scripts use numpy's global generator
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)

    def derived(own: Any) -> int:
        return derive(seed, "seed of the script", str(own))

    _replace(torch, "manual_seed", derived)
    _replace(torch.random, "manual_seed", derived)
    _replace(torch.cuda, "manual_seed", derived)
    _replace(torch.cuda, "manual_seed_all", derived)
    _replace(random, "seed", derived)
    _replace(np.random, "seed", lambda own: derived(own) % _NUMPY_SEEDS)
    _replace_method(derived)


def _replace(module: Any, name: str, derived: Callable[[Any], int]) -> None:
    original = getattr(module, name)

    def set_seed(seed: Any = None, *_: Any, **__: Any) -> Any:
        return original(derived(seed))

    setattr(module, name, set_seed)


def _replace_method(derived: Callable[[Any], int]) -> None:
    original = torch.Generator

    class Generator(original):  # type: ignore[misc,valid-type]
        def manual_seed(self, seed: int) -> Any:
            return super().manual_seed(derived(seed))

    torch.Generator = Generator  # type: ignore[misc]
