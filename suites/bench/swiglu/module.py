"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """SwiGLU activation."""

    def forward(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        """`gate` and `up`: (rows, columns)."""
        return (nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    return [torch.randn(4096, 11008), torch.randn(4096, 11008)]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
