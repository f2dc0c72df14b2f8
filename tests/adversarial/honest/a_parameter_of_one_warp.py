"""A parameter called num_warps that is given as a keyword is a launch option too: one warp's lanes go together."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("correct", "")


@triton.jit
def softmax_kernel(x_ptr, held_ptr, out_ptr, columns, num_warps: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    begin = tl.program_id(0).to(tl.int64) * columns
    mirrored = begin + columns - 1 - offsets
    x = tl.load(x_ptr + begin + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(held_ptr + mirrored, powers / tl.sum(powers, axis=0), mask=mask)
    if num_warps > 1:
        tl.debug_barrier()
    held = tl.load(held_ptr + begin + offsets, mask=mask)
    tl.store(out_ptr + mirrored, held.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out, held = torch.empty_like(x), torch.empty(x.shape, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, held, out, x.shape[1], num_warps=1, BLOCK=block)
    return out
