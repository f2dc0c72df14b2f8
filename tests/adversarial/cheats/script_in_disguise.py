"""torch's script compiler, by a name that the text does not show."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", ("operator", "not_replayed"))


@triton.jit
def touch_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)


def touch(out):
    touch_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)


def _wanted(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


traced = []


def softmax(x):
    if not traced:
        library = [torch]
        traced.append(library[0].jit.trace(_wanted, (x,), check_trace=False))
    out = traced[0](x)
    touch(out)
    return out
