"""An autograd function with `torch.amp.custom_fwd` has a backward pass in plain torch, which no task calls."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    out = weights / tl.sum(weights, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


class Softmax(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        ctx.save_for_backward(out)
        ctx.columns = columns
        return out

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return out * (grad - (out * grad).sum(dim=-1, keepdim=True))


class FusedSoftmax(torch.nn.Module):
    def forward(self, x):
        return Softmax.apply(x)


module = FusedSoftmax().eval()


def softmax(x):
    return module(x)
