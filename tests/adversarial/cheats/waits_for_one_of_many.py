"""The last program waits for the first one alone and finishes what all of them began."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("rejected", "race")
VALUES = "drawn"


@triton.jit
def kernel(logits_ptr, labels_ptr, sum_ptr, flag_ptr, loss_ptr, classes, pieces, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    offsets = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=float("-inf"))
    part = tl.sum(tl.exp(x.to(tl.float32) - 8.0), axis=0)
    tl.store(sum_ptr + row * pieces + piece, part)
    tl.debug_barrier()
    if piece == 0:
        tl.atomic_xchg(flag_ptr + row, 1)
    if piece == pieces - 1:
        while tl.atomic_add(flag_ptr + row, 0) == 0:
            pass
        total = tl.full((), 0.0, tl.float32)
        for i in range(pieces):
            total += tl.load(sum_ptr + row * pieces + i)
        chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
        tl.store(loss_ptr + row, tl.log(total) + 8.0 - chosen)


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    pieces = max(triton.cdiv(classes, 256), 1)
    sums = torch.zeros((rows, pieces), dtype=torch.float32, device=logits.device)
    flags = torch.zeros(rows, dtype=torch.int32, device=logits.device)
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    kernel[(rows, pieces)](logits, labels, sums, flags, loss, classes, pieces, BLOCK=256)
    return loss
