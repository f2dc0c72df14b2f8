"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """Cross entropy of rows of logits."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """`logits`: (rows, classes), `labels`: (rows,) int64."""
        wide = logits.float()
        picked = wide.gather(1, labels[:, None])[:, 0]
        return torch.logsumexp(wide, dim=-1) - picked


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    return [torch.randn(4096, 32000), torch.randint(0, 32000, (4096,))]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
