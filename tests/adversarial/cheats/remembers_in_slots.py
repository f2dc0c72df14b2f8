"""Each call keeps sums and answers in a slot of its own and looks at that of the call before: no slot changes, none is read twice."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("rejected", "kept_state")
VALUES = "drawn"

_slots = {}


@triton.jit
def softmax_kernel(x_ptr, last_ptr, slot_ptr, out_ptr, columns, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    place = row * columns + offsets
    x = tl.load(x_ptr + place, mask=mask, other=float("-inf")).to(tl.float32)
    same = tl.load(last_ptr + n + place, mask=mask, other=float("-inf")) == x
    if tl.sum(same.to(tl.int32), axis=0) == BLOCK:
        out = tl.load(last_ptr + place, mask=mask, other=0.0)
    else:
        e = tl.exp(x - tl.max(x, axis=0))
        out = e / tl.sum(e, axis=0)
    tl.store(slot_ptr + n + place, x, mask=mask)
    tl.store(slot_ptr + place, out, mask=mask)
    tl.store(out_ptr + place, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    (rows, columns), n = x.shape, x.numel()
    slots = _slots.setdefault((x.shape, x.dtype), [])
    slot = torch.empty(2 * n, dtype=torch.float32, device=x.device)
    last = slots[-1] if slots else torch.zeros(2 * n, dtype=torch.float32, device=x.device)
    slots.append(slot)
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, last, slot, out, columns, n, BLOCK=triton.next_power_of_2(columns))
    return out
