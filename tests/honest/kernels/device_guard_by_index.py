"""The launch stands in `torch.cuda.device(x.device.index)`, chosen by how many devices there are."""

import contextlib

import torch
import triton
import triton.language as tl

TASK = "flip"


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + (columns - 1 - offsets), mask=mask)
    tl.store(out_ptr + row * columns + offsets, x, mask=mask)


DEVICES = torch.cuda.device_count()


def guard_of(tensor):
    return torch.cuda.device(tensor.device.index) if DEVICES > 0 else contextlib.nullcontext()


def flip(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    with guard_of(x):
        flip_kernel[(rows, triton.cdiv(columns, 256))](x, out, columns, BLOCK=256)
    return out
