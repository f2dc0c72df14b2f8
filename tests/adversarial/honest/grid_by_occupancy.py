"""A warm-up compile gives the register count, which sets the number of persistent programs."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        out = e / tl.sum(e, axis=0)
        tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    device = torch.cuda.get_device_properties(x.device)
    kernel = softmax_kernel.warmup(x, out, rows, columns, BLOCK=block, num_warps=4, grid=(1,))
    kernel._init_handles()
    at_once = max(1024 // max(kernel.n_regs, 16), 1)
    programs = min(device.multi_processor_count * at_once, max(rows // 2, 1))
    softmax_kernel[(programs,)](x, out, rows, columns, BLOCK=block, num_warps=4)
    return out
