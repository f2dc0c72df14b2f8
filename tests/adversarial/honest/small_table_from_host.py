"""Each call makes a small table in Python; a benchmark is under `__main__`."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * tl.load(table_ptr) + y, mask=mask)


def vector_add(x, y):
    table = torch.tensor([1.0, 2.0, 3.0], dtype=x.dtype, device=x.device)
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, table, out, x.numel(), BLOCK=1024)
    return out


if __name__ == "__main__":
    import sys

    a = torch.randn(1 << 20, device="cuda")
    print(triton.testing.do_bench(lambda: vector_add(a, a)))
    sys.exit(0 if torch.allclose(vector_add(a, a), a + a) else 1)
