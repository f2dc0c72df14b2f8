"""One load takes from a scratch tensor and an input; what other lanes stored there is behind a barrier."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")
CASES = ("fp32-ragged",)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, tile_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    start = tl.program_id(0) * BLOCK
    x = tl.load(x_ptr + start + lanes, mask=start + lanes < n, other=0.0)
    tl.store(tile_ptr + start + (lanes ^ (BLOCK // 2)), x)
    tl.debug_barrier()
    first = tl.arange(0, 2)[:, None] == 0
    places = (start + (lanes ^ (BLOCK // 2)))[None, :]
    size: tl.constexpr = x_ptr.dtype.element_ty.primitive_bitwidth // 8
    tiles = tile_ptr.to(tl.int64) + (start + lanes)[None, :].to(tl.int64) * size
    others = y_ptr.to(tl.int64) + places.to(tl.int64) * size
    both = tl.where(first, tiles, others).to(tl.pointer_type(x_ptr.dtype.element_ty))
    read = tl.load(both, mask=places < n, other=0.0).to(tl.float32)
    total = tl.sum(read, axis=0)
    second = start + (lanes ^ (BLOCK // 2))
    tl.store(out_ptr + second, total, mask=second < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    tiles = torch.empty(blocks * 1024, dtype=x.dtype, device=x.device)
    add_kernel[(blocks,)](x, y, out, tiles, x.numel(), BLOCK=1024, num_warps=8)
    return out
