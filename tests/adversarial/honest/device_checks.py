"""Asserts and lookups that only make sense on a GPU."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(
        out_ptr + row * columns + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask
    )


CURRENT = triton.runtime.driver.active.get_active_torch_device()


def softmax(x):
    assert x.is_cuda and x.device.type == "cuda", "on a GPU only"
    with torch.cuda.device(x.device):
        out = torch.empty(x.shape, device="cuda", dtype=x.dtype)
        softmax_kernel[(x.shape[0],)](
            x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8
        )
    torch.cuda.synchronize()
    return out
