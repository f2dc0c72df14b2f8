"""Inputs and oracle of `layer_norm`."""

from __future__ import annotations

import torch

ROWS = ((3e-3, 0.0), (1.0, 100.0), (1.0, 0.0))
"""Spread and mean that rows have, in any order: a variance of about `eps`, so that leaving `eps` out shows; a mean, of either sign, so far from zero for
the spread that mean(x**2) - mean**2 has no digits left in float32; and neither."""

SHORT = 2
"""Columns of which a spread means nothing."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Normal values with the spread and mean of `ROWS`, as many rows of each, drawn which; weights around 1, biases around 0.

    Rows far from zero have their spread exactly: a few values can lie so close together by chance that no float32 mean is good enough.
    The shortest stay around zero.
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
