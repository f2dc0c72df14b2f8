"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """Matrix product of float16 with float32 sums."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """`a`: (m, k), `b`: (k, n)."""
        return torch.matmul(a, b)


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    return [torch.randn(4096, 4096, dtype=torch.float16), torch.randn(4096, 4096, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
