"""A kernel fills a table in the first call, which all calls read."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def fill_kernel(table_ptr, BLOCK: tl.constexpr):
    tl.store(table_ptr + tl.arange(0, BLOCK), 1.0)


@triton.jit
def scaled_kernel(x_ptr, table_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    x = x * tl.load(table_ptr)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(
        out_ptr + row * columns + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask
    )


_tables = {}


def softmax(x):
    if x.device not in _tables:
        _tables[x.device] = torch.empty(16, device=x.device)
        fill_kernel[(1,)](_tables[x.device], BLOCK=16)
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    scaled_kernel[(x.shape[0],)](x, _tables[x.device], out, x.shape[1], BLOCK=block)
    return out
