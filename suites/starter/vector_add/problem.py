"""Inputs and oracle of `vector_add`."""

from __future__ import annotations

import torch


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Two vectors of standard normal values."""
    n = sizes["n"]
    return {name: torch.randn(n, generator=generator).to(dtype) for name in ("x", "y")}


def oracle(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The sum in float64."""
    return x.double() + y.double()
