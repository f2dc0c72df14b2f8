"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """Rows reversed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`x`: (rows, columns)."""
        return torch.flip(x, dims=[-1])


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    return [torch.randn(8191, 4097)]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
