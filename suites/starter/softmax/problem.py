"""Inputs and oracle of `softmax`."""

from __future__ import annotations

import torch

TAIL = 64


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Standard normal logits; those at the end of the last row are 2 or more.

    An outlier case always has an outlier there: 100 or more, where exp overflows float32. A softmax without max-subtraction
    is then wrong for every seed.
    """
    x = torch.randn(sizes["rows"], sizes["columns"], generator=generator)
    tail = x[-1, -TAIL:]
    tail.abs_().add_(2)
    return {"x": x.to(dtype)}


def oracle(x: torch.Tensor) -> torch.Tensor:
    """The softmax in float64."""
    return torch.softmax(x.double(), dim=-1)
