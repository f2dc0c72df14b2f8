"""The last program to arrive merges what the others stored, by a counter that orders nothing beside itself."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("rejected", "race")
VALUES = "drawn"


@triton.jit
def loss_kernel(
    logits_ptr,
    labels_ptr,
    part_ptr,
    count_ptr,
    loss_ptr,
    classes,
    pieces,
    PIECES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row, piece = tl.program_id(0), tl.program_id(1)
    offsets = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=float("-inf"))
    part = tl.sum(tl.exp(x.to(tl.float32) - 8.0), axis=0)
    tl.store(part_ptr + row * pieces + piece, part)
    arrived = tl.atomic_add(count_ptr + row, 1, sem="relaxed")
    if arrived == pieces - 1:
        lanes = tl.arange(0, PIECES)
        sums = tl.load(part_ptr + row * pieces + lanes, mask=lanes < pieces, other=0.0)
        chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
        tl.store(loss_ptr + row, tl.log(tl.sum(sums, axis=0)) + 8.0 - chosen)


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    pieces = max(triton.cdiv(classes, 256), 1)
    parts = torch.empty((rows, pieces), dtype=torch.float32, device=logits.device)
    count = torch.zeros(rows, dtype=torch.int32, device=logits.device)
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    lanes = triton.next_power_of_2(pieces)
    loss_kernel[(rows, pieces)](logits, labels, parts, count, loss, classes, pieces, PIECES=lanes, BLOCK=256)
    return loss
