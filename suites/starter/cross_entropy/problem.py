"""Inputs and oracle of `cross_entropy`."""

from __future__ import annotations

import torch

TAIL = 64
CONFIDENT = 16.0
FEW, LIKELY = 5, 10.0
"""Classes that share nearly all of a row's mass, as a language model gives it, and about how large their logits are."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Standard normal logits, those at the end of the last row 2 or more; random labels, of several rows the last one's being the last class. In a
    quarter of the rows, drawn which, a few logits are far above the others, and in one of several rows that of the label, so that its
    loss is next to nothing.

    One of those at the end is an outlier in every outlier case: 100 or more, where exp overflows float32, so that a kernel without
    max-subtraction is wrong whatever the seed.
    """
    rows, classes = sizes["rows"], sizes["classes"]
    logits = torch.randn(rows, classes, generator=generator)
    tail = logits[-1, -TAIL:]
    tail.abs_().add_(2)
    labels = torch.randint(classes, (rows,), generator=generator)
    order = torch.rand(rows, generator=generator).argsort()
    few = order[: max(rows // 4, 1)]
    places = torch.randint(classes, (len(few), FEW), generator=generator)
    logits[few[:, None], places] = LIKELY + torch.randn(len(few), FEW, generator=generator)
    if rows > 1:
        labels[-1] = classes - 1
        sure = order[-1:]
        logits[sure, labels[sure]] = CONFIDENT
    return {"logits": logits.to(dtype), "labels": labels}


def oracle(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The loss of each row in float64."""
    wide = logits.double()
    return torch.logsumexp(wide, dim=-1) - wide.gather(-1, labels[:, None]).squeeze(-1)
