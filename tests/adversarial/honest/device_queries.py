"""Capability, name, stream and memory of the device decide the launch options."""

import torch
import triton
import triton.language as tl

TASK = "flip"


@triton.jit
def flip_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + (columns - 1 - offsets), mask=mask)
        tl.store(out_ptr + row * columns + offsets, x, mask=mask)


def flip(x):
    major, _ = torch.cuda.get_device_capability(x.device)
    name = torch.cuda.get_device_name(0)
    target = triton.runtime.driver.active.get_current_target()
    warps = 8 if target.backend == "hip" and "MI300" in name else 4
    stream = torch.cuda.current_stream()
    free, total = torch.cuda.mem_get_info()
    assert major >= 7 and free <= total and torch.cuda.is_available()
    out = torch.empty_like(x)
    flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024, num_warps=warps)
    stream.synchronize()
    return out
