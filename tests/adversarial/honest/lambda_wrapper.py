"""The entry point is a lambda; the function inside makes views and a nested launcher."""

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


def _flip(x, out):
    rows = x.unsqueeze(0).flatten(0, 1).narrow(0, 0, x.shape[0])
    into = out.unsqueeze(0).squeeze(0)

    def launch(block):
        flip_kernel[(rows.size(0),)](rows, into, rows.size(-1), BLOCK=block)

    launch(1024 if rows.size(-1) > 512 else 64)
    return into.view_as(x).reshape(x.shape)


flip = lambda x: _flip(x, torch.empty_like(x))
