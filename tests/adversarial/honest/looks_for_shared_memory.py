"""Storages are compared, to tell an output that lies in an input's memory, and a module with a table is copied."""

import copy

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")


class Zeros(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("zeros", torch.zeros(1024, device="cuda"))


TABLE = copy.deepcopy(Zeros())


@triton.jit
def add_kernel(x_ptr, y_ptr, zeros_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    zeros = tl.load(zeros_ptr + lanes).to(x.dtype)
    tl.store(out_ptr + offsets, x + y + zeros, mask=mask)


def vector_add(x, y):
    out = torch.empty_like(x)
    places = [one.untyped_storage().data_ptr() for one in (x, y, out)]
    assert places[2] not in places[:2]
    assert out.untyped_storage().device == x.device
    assert out.untyped_storage().is_cuda
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, TABLE.zeros, out, x.numel(), BLOCK=1024)
    return out
