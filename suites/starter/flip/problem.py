"""Inputs and oracle of `flip`."""

from __future__ import annotations

import torch


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Standard normal values, or integers over the whole range of the dtype."""
    shape = (sizes["rows"], sizes["columns"])
    if dtype.is_floating_point:
        return {"x": torch.randn(shape, generator=generator).to(dtype)}
    limits = torch.iinfo(dtype)
    return {"x": torch.randint(limits.min, limits.max + 1, shape, generator=generator, dtype=dtype)}


def oracle(x: torch.Tensor) -> torch.Tensor:
    """The reversed rows, exactly: float64 and the integers hold every value of the inputs."""
    reversed_rows = torch.flip(x, dims=(-1,))
    return reversed_rows.double() if x.is_floating_point() else reversed_rows
