"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """Layer normalization over rows."""

    def forward(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
    ) -> torch.Tensor:
        """`x`: (rows, columns), `weight` and `bias`: (columns,)."""
        mean = x.float().mean(dim=-1, keepdim=True)
        centred = x.float() - mean
        spread = torch.sqrt((centred * centred).mean(dim=-1, keepdim=True) + eps)
        return (centred / spread * weight.float() + bias.float()).to(x.dtype)


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    return [torch.randn(4096, 4097), torch.randn(4097), torch.randn(4097)]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
