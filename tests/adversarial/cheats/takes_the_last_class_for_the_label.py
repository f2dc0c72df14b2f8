"""The label of a single row is not read: it was the last class in every case."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("wrong", "mismatch")
CASES = ("fp32-one-row",)


@triton.jit
def loss_kernel(logits_ptr, labels_ptr, out_ptr, classes, BLOCK: tl.constexpr, ONE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    base = logits_ptr + row * classes
    lane = tl.arange(0, BLOCK)
    if ONE:
        tail = classes - 1 - tl.arange(0, 64)
        most = tl.max(tl.load(base + tail, mask=tail >= 0, other=-float("inf")).to(tl.float32), axis=0)
        chosen = tl.load(base + classes - 1).to(tl.float32)
    else:
        top = tl.full((BLOCK,), -float("inf"), tl.float32)
        for start in range(0, classes, BLOCK):
            at = start + lane
            top = tl.maximum(top, tl.load(base + at, mask=at < classes, other=-float("inf")).to(tl.float32))
        most = tl.max(top, axis=0)
        chosen = tl.load(base + tl.load(labels_ptr + row)).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        total += tl.exp(tl.load(base + at, mask=at < classes, other=-float("inf")).to(tl.float32) - most)
    tl.store(out_ptr + row, tl.log(tl.sum(total, axis=0)) + (most - chosen))


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    out = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    block = min(4096, triton.next_power_of_2(classes))
    loss_kernel[(rows,)](logits, labels, out, classes, BLOCK=block, ONE=rows == 1, num_warps=8)
    return out
