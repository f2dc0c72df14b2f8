"""The compiler is handed another text of the kernel, by a name that no static check reads."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", ("patched", "compile", "other_launches", "exception", "refused"))


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns

    if columns > 0:
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        out = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


NAME = "_unsafe" + "_update_src"
if hasattr(softmax_kernel, NAME):
    (lambda found: getattr(found[0], NAME))([softmax_kernel])(
        softmax_kernel.src.replace("if columns > 0:", "if columns < 0:")
    )


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
