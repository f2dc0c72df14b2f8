"""Plain Triton `dequantize_rowwise`: one block of a row per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def dequantize_rowwise_kernel(x_ptr, absmax_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """One block of one row."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    scale = tl.load(absmax_ptr + row).to(tl.float32) / 127.0
    x = tl.load(x_ptr + places, mask=mask, other=0).to(tl.float32)
    tl.store(out_ptr + places, (x * scale).to(out_ptr.dtype.element_ty), mask=mask)


def dequantize_rowwise(x, absmax):
    """`x * absmax / 127`, row by row."""
    rows, columns = x.shape
    out = torch.empty((rows, columns), dtype=absmax.dtype, device=x.device)
    block = min(2048, triton.next_power_of_2(columns))
    grid = (rows, triton.cdiv(columns, block))
    dequantize_rowwise_kernel[grid](x, absmax, out, columns, BLOCK=block, num_warps=4)
    return out
