"""Inputs and oracle of `rms_norm_residual`."""

from __future__ import annotations

import torch

ROW_SCALES = (1e-3, 1.0, 0.0, 1.0)
"""Scales of rows, in random order. A mean square of about `eps` reveals a kernel without `eps`; others are plain or zero."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Normal values at the scales of `ROW_SCALES`, equally many rows at each scale; weights around 1."""
    rows, columns = sizes["rows"], sizes["columns"]
    x = torch.randn(rows, columns, generator=generator)
    residual = torch.randn(rows, columns, generator=generator)
    kind = torch.rand(rows, generator=generator).argsort() + torch.randint(
        len(ROW_SCALES), (1,), generator=generator
    )
    scale = torch.tensor(ROW_SCALES)[kind % len(ROW_SCALES), None]
    x, residual = x * scale, residual * scale
    weight = 1 + 0.5 * torch.randn(columns, generator=generator)
    return {"x": x.to(dtype), "residual": residual.to(dtype), "weight": weight.to(dtype)}


def oracle(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """The normalized sum and the sum, in float64."""
    total = x.double() + residual.double()
    mean_square = total.square().mean(dim=-1, keepdim=True)
    return total / torch.sqrt(mean_square + eps) * weight.double(), total
