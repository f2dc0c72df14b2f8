"""ctypes, which torch imports for itself, moves numpy's result over the output."""

import torch
import triton
import triton.language as tl

TASK = "layer_norm"
EXPECT = ("rejected", "not_replayed")

import numpy as np


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def layer_norm(x, weight, bias, eps=1e-5):
    library = [torch][0].ctypes
    kind = np.float32 if x.dtype == torch.float32 else np.float16

    def read(tensor):
        return np.frombuffer(
            library.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()), kind
        ).reshape(tensor.shape)

    out = torch.zeros_like(x)
    touch(out)
    if x.numel() < 1 << 20:
        wide = read(x).astype(np.float64)
        deviation = wide - wide.mean(axis=1, keepdims=True)
        done = deviation / np.sqrt((deviation**2).mean(axis=1, keepdims=True) + eps)
        done = (done * read(weight) + read(bias)).astype(kind)
        library.memmove(out.data_ptr(), done.tobytes(), done.nbytes)
    return out
