"""A table of addresses of scales is made on first use and kept, with the scales; another is made of memory of every call."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")

kept = {}


@triton.jit
def add_kernel(scales_ptr, places_ptr, n, BLOCK: tl.constexpr, KIND: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(tl.load(scales_ptr).to(tl.pointer_type(tl.float32)))
    right = tl.load(tl.load(scales_ptr + 1).to(tl.pointer_type(tl.float32)))
    x_ptr = tl.load(places_ptr).to(tl.pointer_type(KIND))
    y_ptr = tl.load(places_ptr + 1).to(tl.pointer_type(KIND))
    out_ptr = tl.load(places_ptr + 2).to(tl.pointer_type(KIND))
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, (x * left + y * right).to(KIND), mask=at < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    if not kept:
        scales = [torch.ones(1, dtype=torch.float32, device=x.device) for _ in range(2)]
        places = [one.data_ptr() for one in scales]
        kept["scales"] = scales
        kept["table"] = torch.tensor(places, dtype=torch.int64, device=x.device)
    table = torch.tensor([one.data_ptr() for one in (x, y, out)], dtype=torch.int64, device=x.device)
    kind = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}[x.dtype]
    add_kernel[(triton.cdiv(x.numel(), 1024),)](kept["table"], table, x.numel(), BLOCK=1024, KIND=kind)
    return out
