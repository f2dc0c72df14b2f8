"""Inputs and oracle of `matmul`."""

from __future__ import annotations

import torch

PARTIAL_SUM = 256.0
"""Expected sum over the first half of `k`; the second half cancels it."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Standard normal values with a drift: up over the first half of `k`, down over the second.

    The drift makes partial sums much larger than many results. Near such sums, float16 values are at least 0.125 apart, so
    the judge detects a float16 accumulator at any `k`.
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    a = torch.randn(m, k, generator=generator)
    b = torch.randn(k, n, generator=generator)
    half = k // 2
    if half:
        drift = (PARTIAL_SUM / half) ** 0.5
        a += drift
        b[:half] += drift
        b[-half:] -= drift
    return {"a": a.to(dtype), "b": b.to(dtype)}


def oracle(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product in float64."""
    return a.double() @ b.double()
