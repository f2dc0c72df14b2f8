"""Plain Triton `swiglu`: one block of a row per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """One block of one row."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    places = row * columns + offsets
    gate = tl.load(gate_ptr + places, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + places, mask=mask, other=0.0).to(tl.float32)
    out = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=mask)


def swiglu(gate, up):
    """`silu(gate) * up`."""
    rows, columns = gate.shape
    out = torch.empty_like(gate)
    block = min(1024, triton.next_power_of_2(columns))
    swiglu_kernel[(rows, triton.cdiv(columns, block))](gate, up, out, columns, BLOCK=block, num_warps=4)
    return out
