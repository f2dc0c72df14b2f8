"""The task as a PyTorch module, for models that translate modules (prompt profile `kernelllm`). Nothing judges by it."""

import torch
from torch import nn


class Model(nn.Module):
    """Product of dynamically quantized activations and int8 weights."""

    def forward(self, x: torch.Tensor, weight_int8: torch.Tensor, weight_scale: torch.Tensor) -> torch.Tensor:
        """`x`: (m, k), `weight_int8`: (n, k), `weight_scale`: (n,)."""
        wide = x.float()
        scale = wide.abs().amax(dim=-1, keepdim=True) / 127
        ratio = wide / scale.where(scale > 0, torch.ones_like(scale))
        quantized = ratio.round().clamp(-127, 127)
        sums = quantized.double() @ weight_int8.double().T
        return (sums.float() * scale * weight_scale).to(x.dtype)


def get_inputs() -> list[torch.Tensor]:
    """Inputs of `forward`."""
    weight = torch.randint(-127, 128, (4096, 4096), dtype=torch.int8)
    return [torch.randn(4096, 4096, dtype=torch.float16), weight, torch.rand(4096)]


def get_init_inputs() -> list[object]:
    """`Model` takes none."""
    return []
