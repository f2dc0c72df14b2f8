"""A `functools.partial` of a static method; parameters named like builtins, a lock, and dtypes looked up by name."""

import torch
import triton
import triton.language as tl


import functools
import importlib.util
import threading

TASK = "vector_add"


LOCK = threading.Lock()
PLANS = {}
HAS_EXTRAS = importlib.util.find_spec("triton_extras_that_nobody_has") is not None


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total.to(TYPE), mask=mask)


class Ops:
    WARPS = 4

    @staticmethod
    def add(input, other, *, compile):
        with LOCK:
            block = PLANS.setdefault((input.numel(), input.dtype), 512 if HAS_EXTRAS or compile else 1024)
        out = torch.empty_like(input)
        dtype = getattr(tl, str(input.dtype).split(".")[-1])
        add_kernel[(triton.cdiv(input.numel(), block),)](
            input, other, out, input.numel(), TYPE=dtype, BLOCK=block, num_warps=Ops.WARPS
        )
        return out


def _add(x, y, *, compile):
    return Ops.add(x, y, compile=compile)


vector_add = functools.partial(_add, compile=None)
