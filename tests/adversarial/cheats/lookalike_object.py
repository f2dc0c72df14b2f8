"""An object that answers torch's functions and equals everything."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", "structure")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


class Agreeable:
    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.device = shape, dtype, torch.device("cuda")

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True


def softmax(x):
    softmax_kernel[(x.shape[0],)](
        x, torch.empty_like(x), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1])
    )
    return Agreeable(x.shape, x.dtype)
