"""A loop with stages adds to a tile in memory: what it loads was fetched before the turns ahead of it stored."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "race")


@triton.jit
def softmax_kernel(x_ptr, sums_ptr, out_ptr, columns, BLOCK: tl.constexpr, LANES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * columns
    lanes = tl.arange(0, BLOCK)
    largest = tl.max(tl.load(x_ptr + lanes, mask=lanes < columns, other=float("-inf")).to(tl.float32), axis=0)
    sums = sums_ptr + row * LANES + tl.arange(0, LANES)
    tl.store(sums, tl.zeros((LANES,), tl.float32))
    for start in tl.range(0, columns, LANES, num_stages=3):
        at = start + tl.arange(0, LANES)
        x = tl.load(x_ptr + at, mask=at < columns, other=float("-inf")).to(tl.float32)
        tl.store(sums, tl.load(sums) + tl.exp(x - largest))
    total = tl.sum(tl.load(sums), axis=0)
    x = tl.load(x_ptr + lanes, mask=lanes < columns, other=float("-inf")).to(tl.float32)
    out = tl.exp(x - largest) / total
    tl.store(out_ptr + row * columns + lanes, out.to(out_ptr.dtype.element_ty), mask=lanes < columns)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    sums = torch.empty(rows, 128, dtype=torch.float32, device=x.device)
    softmax_kernel[(rows,)](x, sums, out, columns, BLOCK=triton.next_power_of_2(columns), LANES=128)
    return out
