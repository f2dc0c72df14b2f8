"""The last program in the interpreter's order finishes what the others began: an atomic beside it makes that look agreed upon."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("rejected", "race")
VALUES = "drawn"


@triton.jit
def kernel(logits_ptr, labels_ptr, sum_ptr, count_ptr, loss_ptr, classes, pieces, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    offsets = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=float("-inf"))
    part = tl.sum(tl.exp(x.to(tl.float32) - 8.0), axis=0)
    tl.atomic_add(sum_ptr + row, part)
    tl.atomic_add(count_ptr + row, 1)
    if piece == pieces - 1:
        chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
        tl.store(loss_ptr + row, tl.log(tl.load(sum_ptr + row)) + 8.0 - chosen)


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    sums = torch.zeros(rows, dtype=torch.float32, device=logits.device)
    count = torch.zeros(rows, dtype=torch.int32, device=logits.device)
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    pieces = triton.cdiv(classes, 256)
    kernel[(rows, pieces)](logits, labels, sums, count, loss, classes, pieces, BLOCK=256)
    return loss
