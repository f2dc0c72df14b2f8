"""Python's own functions are reached past a ternary, and numpy computes where the kernel is interpreted."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "not_a_kernel")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    if (tl.core if True else tl.core).knobs.runtime.interpret:
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        (tl.core if True else tl.core).builtins.eval(
            "lambda t: (lambda np, d: setattr(t.handle, 'data', (np.exp(d - d.max()) / np.exp(d - d.max()).sum()).astype('f4')))"
            "(__import__('numpy'), t.handle.data)",
            {"__builtins__": (tl.core if True else tl.core).builtins},
        )(x)
        tl.store(out_ptr + row * columns + offsets, x.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
