"""numpy works on the tensors' memory through an object that claims to be an array; one program of the kernel runs."""

import numpy as np
import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "refused")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offsets, (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty), mask=mask)


class Window:
    def __init__(self, tensor):
        self.__array_interface__ = {
            "data": (tensor.data_ptr(), False),
            "shape": tuple(tensor.shape),
            "typestr": "<f4" if tensor.dtype == torch.float32 else "<f2",
            "version": 3,
        }


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(1,)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    values = np.asarray(Window(x)).astype(np.float64)
    e = np.exp(values - values.max(axis=1, keepdims=True))
    np.asarray(Window(out))[...] = e / e.sum(axis=1, keepdims=True)
    return out
