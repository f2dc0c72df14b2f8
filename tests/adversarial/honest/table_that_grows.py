"""A table of indices is kept, and made longer by a kernel that reads the shorter one, when a call is wider than all before."""

import torch
import triton
import triton.language as tl

TASK = "flip"
EXPECT = ("correct", "")

_tables = {}


@triton.jit
def first_kernel(table_ptr, BLOCK: tl.constexpr):
    tl.store(table_ptr + tl.arange(0, BLOCK), tl.arange(0, BLOCK))


@triton.jit
def longer_kernel(short_ptr, table_ptr, HALF: tl.constexpr):
    offsets = tl.arange(0, HALF)
    short = tl.load(short_ptr + offsets)
    tl.store(table_ptr + offsets, short)
    tl.store(table_ptr + HALF + offsets, short + HALF)


@triton.jit
def flip_kernel(x_ptr, table_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    places = tl.load(table_ptr + offsets, mask=mask, other=0)
    x = tl.load(x_ptr + row * columns + columns - 1 - places, mask=mask)
    tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def _table(size, device):
    if device not in _tables:
        _tables[device] = torch.empty(16, dtype=torch.int32, device=device)
        first_kernel[(1,)](_tables[device], BLOCK=16)
    while _tables[device].numel() < size:
        short = _tables[device]
        _tables[device] = torch.empty(2 * short.numel(), dtype=torch.int32, device=device)
        longer_kernel[(1,)](short, _tables[device], HALF=short.numel())
    return _tables[device]


def flip(x):
    columns = x.shape[1]
    block = triton.next_power_of_2(columns)
    out = torch.empty_like(x)
    flip_kernel[(x.shape[0],)](x, _table(block, x.device), out, columns, BLOCK=block)
    return out
