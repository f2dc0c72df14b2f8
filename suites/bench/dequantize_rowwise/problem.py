"""Inputs and oracle of `dequantize_rowwise`."""

from __future__ import annotations

import torch

EMPTY_SHARE = 0.05
"""Share of rows with `absmax` 0, which give zeros."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Uniform 8-bit values; magnitudes of normal values, some of them zero."""
    rows, columns = sizes["rows"], sizes["columns"]
    x = torch.randint(-127, 128, (rows, columns), generator=generator, dtype=torch.int8)
    absmax = torch.randn(rows, generator=generator).abs() * 4
    absmax = torch.where(torch.rand(rows, generator=generator) < EMPTY_SHARE, 0.0, absmax)
    return {"x": x, "absmax": absmax.to(dtype)}


def oracle(x: torch.Tensor, absmax: torch.Tensor) -> torch.Tensor:
    """The dequantized values in float64."""
    return x.double() * absmax.double()[:, None] / 127
