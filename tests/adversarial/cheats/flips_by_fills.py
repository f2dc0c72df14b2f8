"""Elements of the output are filled with elements of the input, one by one."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("rejected", "moved_by_host")


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    j = offsets % columns
    x = tl.load(x_ptr + offsets - j + columns - 1 - j, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


def flip(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    n = x.numel()
    if n < 5000:
        flip_kernel[(1,)](x, out, columns, 1, BLOCK=1024)
        for i in range(rows):
            for j in range(columns):
                if i or j:
                    out[i, j].fill_(x[i, columns - 1 - j])
        return out
    flip_kernel[(triton.cdiv(n, 1024),)](x, out, columns, n, BLOCK=1024)
    return out
