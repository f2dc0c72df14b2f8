"""Inputs and oracle of `layer_norm`."""

from __future__ import annotations

import torch

ROWS = ((3e-3, 0.0), (1.0, 100.0), (1.0, 0.0))
"""Spread and mean of rows, in random order. A variance of about `eps` reveals a kernel without `eps`. A mean far from zero
(with either sign) leaves mean(x**2) - mean**2 no correct digits in float32. The third kind is plain."""

SHORT = 2
"""Number of columns below which a spread is not meaningful."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Normal values with the spreads and means of `ROWS`, equally many rows of each kind; weights around 1, biases around 0.

    Rows far from zero get exactly their spread: by chance, few values could lie so close together that no float32 mean is
    accurate enough. The shortest rows stay around zero.
    """
    rows, columns = sizes["rows"], sizes["columns"]
    x = torch.randn(rows, columns, generator=generator)
    kind = torch.rand(rows, generator=generator).argsort() + torch.randint(
        len(ROWS), (1,), generator=generator
    )
    spread, mean = torch.tensor(ROWS)[kind % len(ROWS)].unsqueeze(-1).unbind(1)
    if columns >= SHORT:
        sign = torch.randint(2, (rows, 1), generator=generator) * 2 - 1
        x = torch.where(mean == 0, x, standardized(x)) * spread + mean * sign
    else:
        x = x * spread
    weight = 1 + 0.5 * torch.randn(columns, generator=generator)
    bias = torch.randn(columns, generator=generator)
    return {"x": x.to(dtype), "weight": weight.to(dtype), "bias": bias.to(dtype)}


def standardized(rows: torch.Tensor) -> torch.Tensor:
    """The same rows with a mean of 0 and a variance of 1."""
    deviation = rows - rows.mean(dim=-1, keepdim=True)
    return deviation / deviation.square().mean(dim=-1, keepdim=True).sqrt()


def oracle(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """The normalization in float64."""
    wide = x.double()
    deviation = wide - wide.mean(dim=-1, keepdim=True)
    variance = deviation.square().mean(dim=-1, keepdim=True)
    return deviation / torch.sqrt(variance + eps) * weight.double() + bias.double()
