"""The author's guard is a subclass of `torch.cuda.device_of`."""

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


class DeviceOf(torch.cuda.device_of):
    def __init__(self, tensor):
        super().__init__(tensor)
        self.entered = False

    def __enter__(self):
        self.entered = True
        return super().__enter__()


def flip(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    with DeviceOf(x):
        flip_kernel[(rows, triton.cdiv(columns, 512))](x, out, columns, BLOCK=512)
    return out
