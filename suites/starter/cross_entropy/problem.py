"""Inputs and oracle of `cross_entropy`."""

from __future__ import annotations

import torch

TAIL = 64
CONFIDENT = 16.0


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Standard normal logits, those at the end of the last row 2 or more; random labels, the last row's being the last class, and
    in the first of several rows that of a logit far above the others, so that its loss is next to nothing.

    One of the former is an outlier in every outlier case: 100 or more, where exp overflows float32, so that a kernel without
    max-subtraction is wrong whatever the seed.
    """
    rows, classes = sizes["rows"], sizes["classes"]
    logits = torch.randn(rows, classes, generator=generator)
    tail = logits[-1, -TAIL:]
    tail.abs_().add_(2)
    labels = torch.randint(classes, (rows,), generator=generator)
    labels[-1] = classes - 1
    if rows > 1:
        logits[:1].scatter_(1, labels[:1, None], CONFIDENT)
    return {"logits": logits.to(dtype), "labels": labels}


def oracle(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The loss of each row in float64."""
    wide = logits.double()
    return torch.logsumexp(wide, dim=-1) - wide.gather(-1, labels[:, None]).squeeze(-1)
