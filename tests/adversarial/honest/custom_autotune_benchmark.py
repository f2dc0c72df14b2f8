"""Each call tunes again with the author's benchmark and hooks; the import runs the kernel once."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


def cleared(arguments, reset_only=False):
    arguments["out_ptr"].zero_()


def kept(arguments, exception):
    if exception is not None:
        raise exception


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}) for block in (512, 1024)],
    key=["n"],
    pre_hook=cleared,
    post_hook=kept,
    do_bench=lambda call, quantiles: triton.testing.do_bench(call, warmup=1, rep=1, quantiles=quantiles),
)
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    before = tl.load(out_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, before + (x + y), mask=mask)


def vector_add(x, y):
    add_kernel.cache.clear()
    out = torch.zeros_like(x)
    add_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel())
    return out


if torch.cuda.is_available():
    tried = torch.ones(5, device="cuda")
    vector_add(tried, tried)
