"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """Row-wise dequantization."""

    def forward(self, x: torch.Tensor, absmax: torch.Tensor) -> torch.Tensor:
        """`x`: (rows, columns) of int8, `absmax`: (rows,)."""
        return (x.float() * (absmax.float() / 127)[:, None]).to(absmax.dtype)


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    return [torch.randint(-127, 128, (8192, 8192), dtype=torch.int8), torch.rand(8192)]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
