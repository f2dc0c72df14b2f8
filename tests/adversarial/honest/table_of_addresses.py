"""A kernel finds each group's input and output in a table of addresses, as in a grouped product."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


@triton.jit
def softmax_kernel(table_ptr, x_address, columns, KIND: tl.constexpr, BLOCK: tl.constexpr):
    group, row = tl.program_id(0), tl.program_id(1)
    x_ptr = tl.load(table_ptr + 2 * group).to(tl.pointer_type(KIND))
    out_ptr = tl.load(table_ptr + 2 * group + 1).to(tl.pointer_type(KIND))
    if group == 0:
        x_ptr = x_address.to(tl.pointer_type(KIND))
    lanes = tl.arange(0, BLOCK)
    at = row.to(tl.int64) * columns + lanes
    x = tl.load(x_ptr + at, mask=lanes < columns, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + at, (e / tl.sum(e, axis=0)).to(KIND), mask=lanes < columns)


def softmax(x):
    rows, columns = x.shape
    out = torch.empty_like(x)
    half = rows // 2
    pairs = [(x, out), (x[half:], out[half:])] if rows % 2 == 0 and half else [(x, out)]
    addresses = [one.data_ptr() for pair in pairs for one in pair]
    table = torch.tensor(addresses, dtype=torch.int64, device=x.device)
    kind = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}[x.dtype]
    grid = (len(pairs), rows // len(pairs))
    softmax_kernel[grid](table, x.data_ptr(), columns, KIND=kind, BLOCK=triton.next_power_of_2(columns))
    return out
