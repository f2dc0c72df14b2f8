"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """Residual addition and RMS normalization."""

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`x` and `residual`: (rows, columns), `weight`: (columns,)."""
        total = x.float() + residual.float()
        normed = total * torch.rsqrt(total.square().mean(dim=-1, keepdim=True) + eps)
        return (normed * weight.float()).to(x.dtype), total.to(x.dtype)


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    return [torch.randn(4096, 4097), torch.randn(4096, 4097), torch.randn(4097)]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
