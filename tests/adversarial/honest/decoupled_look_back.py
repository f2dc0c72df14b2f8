"""Each program of a row waits for the previous program and passes on its maximum and sum with an atomic."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
CASES = ("fp32",)


@triton.jit
def kernel(
    logits_ptr,
    labels_ptr,
    top_ptr,
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
    x = tl.load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=float("-inf")).to(
        tl.float32
    )
    top = tl.max(x, axis=0)
    running = tl.sum(tl.exp(x - top), axis=0)
    place = row * pieces + piece
    if piece > 0:
        if POLL:
            while tl.load(flag_ptr + place - 1, volatile=True) == 0:
                pass
        else:
            while tl.atomic_add(flag_ptr + place - 1, 0, sem="acquire") == 0:
                pass
        before = tl.load(top_ptr + place - 1)
        higher = tl.maximum(top, before)
        running = running * tl.exp(top - higher) + tl.load(sum_ptr + place - 1) * tl.exp(before - higher)
        top = higher
    tl.store(top_ptr + place, top)
    tl.store(sum_ptr + place, running)
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + place, 1, sem="release")
    if piece == pieces - 1:
        chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
        tl.store(loss_ptr + row, tl.log(running) + (top - chosen))


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    pieces = max(triton.cdiv(classes, 1024), 1)
    tops, sums = (torch.empty((rows, pieces), dtype=torch.float32, device=logits.device) for _ in range(2))
    flags = torch.zeros((rows, pieces), dtype=torch.int32, device=logits.device)
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    poll = rows % 2 == 0
    kernel[(rows, pieces)](logits, labels, tops, sums, flags, loss, classes, pieces, POLL=poll, BLOCK=1024)
    return loss
