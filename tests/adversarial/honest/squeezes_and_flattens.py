"""unsqueeze, flatten, squeeze, view_as and narrow make views."""

import torch
import triton
import triton.language as tl

TASK = "flip"


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + (columns - 1 - offsets), mask=mask)
        tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def flip(x):
    rows = x.unsqueeze(0).flatten(0, 1).narrow(0, 0, x.shape[0])
    out = torch.empty_like(rows).unsqueeze(0).squeeze(0)
    flip_kernel[(rows.size(0),)](rows, out, rows.size(-1), BLOCK=1024)
    return out.view_as(x).reshape(x.shape)
