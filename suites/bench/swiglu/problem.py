"""Inputs and oracle of `swiglu`."""

from __future__ import annotations

import torch

SPREAD = 4.0
"""Standard deviation of `gate`: some sigmoids are nearly 0 and some nearly 1."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Normal values, those of `gate` with a wider spread."""
    shape = sizes["rows"], sizes["columns"]
    gate = SPREAD * torch.randn(*shape, generator=generator)
    up = torch.randn(*shape, generator=generator)
    return {"gate": gate.to(dtype), "up": up.to(dtype)}


def oracle(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """The activation in float64."""
    wide = gate.double()
    return wide * torch.sigmoid(wide) * up.double()
