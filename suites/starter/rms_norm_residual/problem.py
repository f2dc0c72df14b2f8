"""Inputs and oracle of `rms_norm_residual`."""

from __future__ import annotations

import torch

ROW_SCALES = (1e-3, 1.0, 0.0, 1.0)
"""Scale that rows have in turn: a mean square of about `eps`, so that leaving `eps` out shows; plain ones; and zeros."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Normal values at the scales of `ROW_SCALES` in turn; weights around 1."""
    rows, columns = sizes["rows"], sizes["columns"]
    x = torch.randn(rows, columns, generator=generator)
    residual = torch.randn(rows, columns, generator=generator)
    for place, scale in enumerate(ROW_SCALES):
        for tensor in (x, residual):
            chosen = tensor[place :: len(ROW_SCALES)]
            chosen *= scale
    weight = 1 + 0.5 * torch.randn(columns, generator=generator)
    return {"x": x.to(dtype), "residual": residual.to(dtype), "weight": weight.to(dtype)}


def oracle(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Normalized sum and sum, in float64."""
    total = x.double() + residual.double()
    mean_square = total.square().mean(dim=-1, keepdim=True)
    return total / torch.sqrt(mean_square + eps) * weight.double(), total
