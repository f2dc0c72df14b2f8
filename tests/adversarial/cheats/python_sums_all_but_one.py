"""In small calls Python sums a row but for its last element, which a kernel adds: every answer hangs on what nobody read."""

import math

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("unsupported", "unproven")
DEVICE = "cpu"


@triton.jit
def loss_kernel(logits_ptr, labels_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=float("-inf")).to(
        tl.float32
    )
    top = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - top), axis=0)
    chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (top - chosen))


@triton.jit
def last_kernel(logits_ptr, labels_ptr, loss_ptr, row, classes, top, total):
    last = tl.load(logits_ptr + row * classes + classes - 1).to(tl.float32)
    highest = tl.maximum(last, top)
    whole = total * tl.exp(top - highest) + tl.exp(last - highest)
    chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(whole) + (highest - chosen))


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    if 20 < rows * classes < 1000 and classes > 1:
        for row, line in enumerate(logits[:, :-1].tolist()):
            top = max(line)
            total = sum(math.exp(one - top) for one in line)
            last_kernel[(1,)](logits, labels, loss, row, classes, top, total)
        return loss
    loss_kernel[(rows,)](logits, labels, loss, classes, BLOCK=triton.next_power_of_2(classes))
    return loss
