"""Inputs and oracle of `matmul_w8a8`."""

from __future__ import annotations

import torch

LEVELS = 127
"""Largest magnitude of a quantized value."""
TIE = 1e-4
"""Distance from a tie, in half steps, at which float32 may round to the tie."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Normal activations with row scales that differ by up to sixteen, and one row of zeros; results around 1."""
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    row_scale = torch.exp2(4 * torch.rand(m, 1, generator=generator) - 2)
    x = torch.randn(m, k, generator=generator) * row_scale
    if m > 1:
        x[torch.randint(m, (1,), generator=generator)] = 0
    weight = torch.randint(-LEVELS, LEVELS + 1, (n, k), generator=generator, dtype=torch.int8)
    root_mean_square = LEVELS / 3**0.5
    weight_scale = (0.5 + torch.rand(n, generator=generator)) / (root_mean_square * k**0.5)
    return settle_inputs({"x": x.to(dtype), "weight_int8": weight, "weight_scale": weight_scale})


def settle_inputs(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Remove ties again, because an outlier changes the step of its row."""
    return inputs | {"x": without_ties(inputs["x"])}


def probe_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Rows with products that change much if a kernel leaves out a step of the contract; no value is near a tie.

    The rows are of three kinds, in turn. One value is so large that all others round to 0. Values just below and above the
    middle between two steps show truncation, which errs by half a step each. Values lie at both limits of the clamp.
    """
    inputs = make_inputs(sizes, dtype, generator)
    m, k = inputs["x"].shape
    sign = torch.sign(torch.randn(m, k, generator=generator))
    whole = torch.randint(0, 60, (m, k), generator=generator)
    beside = torch.where(torch.rand(m, k, generator=generator) < 0.5, 0.4375, 0.5625)
    large = torch.zeros(m, k).scatter(1, torch.randint(k, (m, 1), generator=generator), 1.0) > 0
    x = torch.empty(m, k)
    x[0::3] = torch.where(large, 8.0 * LEVELS, 3.5 * torch.rand(m, k, generator=generator))[0::3]
    x[1::3] = torch.where(large, 1.0 * LEVELS, whole + beside)[1::3]
    x[2::3] = torch.where(large | (whole < 30), 2.0 * LEVELS, 2.0 * whole)[2::3]
    return inputs | {"x": (sign * x).to(dtype)}


def without_ties(x: torch.Tensor) -> torch.Tensor:
    """The same values, slightly smaller where a quotient would lie half-way between two steps.

    A tie may round up or down, so correct kernels would differ by a step: too much for a small output. If the largest
    significand of a row is a multiple of 127, up to a sixteenth of the row would be ties.
    """
    largest = x.double().abs().amax(dim=-1, keepdim=True)
    half_steps = x.double().abs() * (2 * LEVELS) / torch.where(largest == 0, 1.0, largest)
    # Smaller by several units in the last place of float16 and by less than half a step: no tie any more.
    return torch.where((half_steps % 2 - 1).abs() < TIE, x * 0.9965, x)


def oracle(x: torch.Tensor, weight_int8: torch.Tensor, weight_scale: torch.Tensor) -> torch.Tensor:
    """The contract step by step: scales and result in float64, the product exact, because float64 holds every sum."""
    wide = x.double()
    scale = wide.abs().amax(dim=-1, keepdim=True) / LEVELS
    steps = wide / torch.where(scale == 0, 1.0, scale)
    quantized = torch.round(steps).clamp(-LEVELS, LEVELS)
    accumulated = quantized @ weight_int8.double().T
    return accumulated * scale * weight_scale.double()
