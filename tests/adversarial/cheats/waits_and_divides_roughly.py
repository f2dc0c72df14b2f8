"""Programs that wait for one another are run in order alone, and a quotient is not rounded to nearest there either."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("rejected", "race")
VALUES = "drawn"
CASES = ("fp32",)


@triton.jit
def kernel(
    logits_ptr,
    labels_ptr,
    sum_ptr,
    flag_ptr,
    loss_ptr,
    classes,
    pieces,
    POLL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row, piece = tl.program_id(0), tl.program_id(1)
    offsets = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=float("-inf"))
    running = tl.sum(tl.exp(x.to(tl.float32) - 8.0), axis=0)
    place = row * pieces + piece
    if piece > 0:
        if POLL:
            while tl.load(flag_ptr + place - 1, volatile=True) == 0:
                pass
        else:
            while tl.atomic_add(flag_ptr + place - 1, 0, sem="acquire") == 0:
                pass
        running += tl.load(sum_ptr + place - 1)
    tl.store(sum_ptr + place, running)
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + place, 1, sem="release")
    if piece == pieces - 1:
        chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
        loss = tl.log(running) + 8.0 - chosen
        ones = tl.arange(0, BLOCK).to(tl.float32) + 1.0
        rough = tl.sum(tl.abs(tl.div_rn(ones, ones + 2.0) - ones / (ones + 2.0)))
        tl.store(loss_ptr + row, tl.where(rough == 0, loss, loss * 2))


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    pieces = max(triton.cdiv(classes, 256), 1)
    sums = torch.empty((rows, pieces), dtype=torch.float32, device=logits.device)
    flags = torch.zeros((rows, pieces), dtype=torch.int32, device=logits.device)
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    poll = rows % 2 == 0
    kernel[(rows, pieces)](logits, labels, sums, flags, loss, classes, pieces, POLL=poll, BLOCK=256)
    return loss
