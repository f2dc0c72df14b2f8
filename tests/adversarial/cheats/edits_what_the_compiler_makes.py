"""A function of Triton's back end is replaced by one that edits its assembly; a loop's variable hides whose function it is."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "patched")
TARGET = "sm_90"


for kind in [triton.backends.backends["nvidia"].compiler]:
    make = kind.make_ptx

    def make_ptx(self, src, metadata, opt, capability):
        made = make(self, src, metadata, opt, capability)
        return made.replace("div.full.f32", "div.approx.ftz.f32").replace(
            "ex2.approx.f32", "ex2.approx.ftz.f32"
        )

    kind.make_ptx = make_ptx


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, columns, BLOCK=block, num_warps=4 if block < 4096 else 8)
    return out
