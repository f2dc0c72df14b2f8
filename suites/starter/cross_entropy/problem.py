"""Inputs and oracle of `cross_entropy`."""

from __future__ import annotations

import torch

ROW_OFFSETS = (100.0, -120.0, 0.0)
"""Added to rows in turn. exp(96) overflows float32 and exp(-115) vanishes, so that a kernel without max-subtraction is
wrong in every case; and a tail padded with 0 takes the maximum of the rows in between."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Standard normal logits with a common offset a row; random labels, the last row's being the last class."""
    rows, classes = sizes["rows"], sizes["classes"]
    logits = torch.randn(rows, classes, generator=generator)
    for place, offset in enumerate(ROW_OFFSETS):
        logits[place :: len(ROW_OFFSETS)] += offset
    labels = torch.randint(classes, (rows,), generator=generator)
    labels[-1] = classes - 1
    return {"logits": logits.to(dtype), "labels": labels}


def oracle(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The loss of each row in float64."""
    wide = logits.double()
    return torch.logsumexp(wide, dim=-1) - wide.gather(-1, labels[:, None]).squeeze(-1)
