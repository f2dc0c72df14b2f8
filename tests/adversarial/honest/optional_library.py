"""A function of the vendor's library is used where it can be imported, the plain one elsewhere."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


try:
    from triton.language.extra import libdevice
except Exception:
    libdevice = None

try:
    import some_library_that_is_not_here as optional
except ImportError:
    optional = None


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    assert optional is None or hasattr(optional, "__version__")
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
