"""Inputs and oracle of `softmax`."""

from __future__ import annotations

import torch

ROW_OFFSETS = (100.0, -120.0, 0.0)
"""Added to rows in turn. exp(96) overflows float32 and exp(-115) vanishes, so that a softmax without max-subtraction
is wrong in every case; and a tail padded with 0 takes the maximum of the rows in between."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Standard normal logits; rows carry a common offset in turn, which a softmax has to ignore."""
    rows, columns = sizes["rows"], sizes["columns"]
    x = torch.randn(rows, columns, generator=generator)
    for place, offset in enumerate(ROW_OFFSETS):
        x[place :: len(ROW_OFFSETS)] += offset
    return {"x": x.to(dtype)}


def oracle(x: torch.Tensor) -> torch.Tensor:
    """The softmax in float64."""
    return torch.softmax(x.double(), dim=-1)
