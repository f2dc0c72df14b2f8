"""Outliers: the second distribution of values that cases are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

PROBABILITY = 0.001
FACTOR = 50
TAIL = 64
"""One outlier lies among the last elements of the last row, so in the last tile."""


def inject_outliers(
    inputs: Mapping[str, torch.Tensor | int | float], names: Iterable[str], generator: torch.Generator
) -> None:
    """Multiply 0.1 % of the elements of each named input by 50, in place; never fewer than one of them.

    One of them always lies in the last 64 elements of the last row of the last dimension. Each element is multiplied at most
    once. An empty tensor stays as it is; a name that is no tensor is a `TypeError`.
    """
    for name in names:
        tensor = inputs[name]
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is no tensor, so it cannot hold outliers")
        if tensor.numel():
            flat = tensor.view(-1)
            flat[_places(flat.numel(), tensor.shape[-1] if tensor.dim() else 1, generator)] *= FACTOR


def _places(elements: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    """Distinct places of outliers in the flat tensor, one of them in the tail of the last row."""
    tail = int(torch.randint(min(TAIL, columns), (1,), generator=generator))
    count = max(1, round(elements * PROBABILITY))
    others = torch.randint(elements, (count - 1,), generator=generator)
    places: torch.Tensor = torch.unique(torch.cat([others, torch.tensor([elements - 1 - tail])]))
    return places
