"""The import leaves tables from a list, from a random generator and from a kernel that is tuned, an empty workspace, and a kernel warmed up."""

import torch
import triton
import triton.language as tl

TASK = "vector_add"
EXPECT = ("correct", "")


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def table_kernel(table_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(table_ptr + offsets, offsets * 0.5, mask=offsets < n)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, scale_ptr, table_ptr, signs_ptr, work_ptr, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    sign = tl.load(signs_ptr + tl.arange(0, BLOCK) % 64)
    tl.store(work_ptr + offsets, (x + y) * sign, mask=mask)
    tl.debug_barrier()
    total = tl.load(work_ptr + offsets, mask=mask) * sign
    total = total * tl.load(scale_ptr) * tl.load(table_ptr + 4)
    tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=mask)


ROOM = 1 << 16
SCALE = torch.tensor([0.5, 3.0], device="cuda")
SIGNS = torch.rand(64, device="cuda")
SIGNS = torch.where(SIGNS < 0.5, -1.0, 1.0)
TABLE = torch.empty(100, device="cuda")
table_kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](TABLE, 100)
TABLE = TABLE.clone()
WORK = torch.empty(ROOM, device="cuda")


def vector_add(x, y):
    n = x.numel()
    out = torch.empty_like(x)
    work = WORK if n <= ROOM else torch.empty(n, device=x.device)
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, SCALE, TABLE, SIGNS, work, BLOCK=1024)
    return out


_warm = torch.ones(64, device="cuda")
vector_add(_warm, _warm)
