"""A torch module's `forward` launches the kernel; a function calls one instance."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


class Softmax(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.warps = 4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=block, num_warps=self.warps)
        return out


_module = Softmax().eval()


def softmax(x):
    return _module(x)
