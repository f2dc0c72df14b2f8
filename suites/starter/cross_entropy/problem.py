"""Inputs and oracle of `cross_entropy`."""

from __future__ import annotations

import torch

TAIL = 64
CONFIDENT = 16.0
FEW, LIKELY = 5, 10.0
"""In a confident row: number of classes with nearly all of the probability, and the size of their logits."""


def make_inputs(
    sizes: dict[str, int], dtype: torch.dtype, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Standard normal logits and random labels, with special rows.

    At the end of the last row the logits are 2 or more, and its label is the last class (if there are several rows). In a
    random quarter of the rows a few logits are far above the others. In one of several rows such a logit is the label's, so
    that the loss is almost 0.

    An outlier case always has an outlier at the end of the last row: 100 or more, where exp overflows float32. A kernel
    without max-subtraction is then wrong for every seed.
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
