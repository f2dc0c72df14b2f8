"""One kernel reduces partial maxima with their indices, a second kernel merges them with `return_indices`."""

import torch
import triton
import triton.language as tl

TASK = "top1"


@triton.jit
def partial_kernel(x_ptr, tops_ptr, places_ptr, columns, parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    offsets = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=float("-inf"))
    top, place = tl.max(x, axis=0, return_indices=True)
    tl.store(tops_ptr + row * parts + part, top)
    tl.store(places_ptr + row * parts + part, part * BLOCK + place)


@triton.jit
def merge_kernel(tops_ptr, places_ptr, values_ptr, indices_ptr, parts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, BLOCK)
    tops = tl.load(tops_ptr + row * parts + part, mask=part < parts, other=float("-inf"))
    places = tl.load(places_ptr + row * parts + part, mask=part < parts, other=2147483647)
    top = tl.max(tops, axis=0)
    tl.store(values_ptr + row, top.to(values_ptr.dtype.element_ty))
    tl.store(indices_ptr + row, tl.min(tl.where(tops == top, places, 2147483647), axis=0).to(tl.int64))


def top1(x):
    rows, columns = x.shape
    block = 128
    parts = triton.cdiv(columns, block)
    tops = torch.empty((rows, parts), dtype=torch.float32, device=x.device)
    places = torch.empty((rows, parts), dtype=torch.int32, device=x.device)
    values = torch.empty((rows,), dtype=x.dtype, device=x.device)
    indices = torch.empty((rows,), dtype=torch.long, device=x.device)
    partial_kernel[(rows, parts)](x, tops, places, columns, parts, BLOCK=block)
    merge_kernel[(rows,)](tops, places, values, indices, parts, BLOCK=triton.next_power_of_2(parts))
    return values, indices
