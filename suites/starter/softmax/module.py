"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """Softmax over rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`x`: (rows, columns)."""
        return torch.softmax(x.float(), dim=-1).to(x.dtype)


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    return [torch.randn(8192, 4097)]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
