"""A forged answer is written to every open descriptor."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("rejected", "tampering")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x, y):
    system = [torch][0].os
    forged = b'{"type": "returned", "nonce": "00000000000000000000000000000000", "outputs": []}'
    for descriptor in range(3, 64):
        try:
            system.write(descriptor, len(forged).to_bytes(8, "little") + forged)
        except OSError:
            continue
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
