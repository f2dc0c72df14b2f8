"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """Sum of two vectors."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Both of the same length."""
        return x + y


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    return [torch.randn(1_000_003), torch.randn(1_000_003)]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
