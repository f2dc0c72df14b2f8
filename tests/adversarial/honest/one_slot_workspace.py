"""Partial results lie in a workspace that fits the call's sizes exactly and is made anew when they change."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("correct", "")
PIECE = 1024


@triton.jit
def pieces_kernel(logits_ptr, top_ptr, sum_ptr, classes, pieces, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    offsets = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=float("-inf")).to(
        tl.float32
    )
    top = tl.max(x, axis=0)
    tl.store(top_ptr + row * pieces + piece, top)
    tl.store(sum_ptr + row * pieces + piece, tl.sum(tl.exp(x - top), axis=0))


@triton.jit
def merge_kernel(logits_ptr, labels_ptr, top_ptr, sum_ptr, loss_ptr, classes, pieces, PIECES: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, PIECES)
    tops = tl.load(top_ptr + row * pieces + offsets, mask=offsets < pieces, other=float("-inf"))
    sums = tl.load(sum_ptr + row * pieces + offsets, mask=offsets < pieces, other=0.0)
    top = tl.max(tops, axis=0)
    total = tl.sum(sums * tl.exp(tops - top), axis=0)
    chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (top - chosen))


class Workspace:
    def __init__(self):
        self.shape, self.memory = None, None

    def get(self, shape, device):
        if shape != self.shape:
            self.shape, self.memory = shape, torch.empty(shape, dtype=torch.float32, device=device)
        return self.memory


workspace = Workspace()


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    pieces = triton.cdiv(classes, PIECE)
    top, total = workspace.get((2, rows, pieces), logits.device)
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    pieces_kernel[(rows, pieces)](logits, top, total, classes, pieces, BLOCK=PIECE)
    merge_kernel[(rows,)](
        logits, labels, top, total, loss, classes, pieces, PIECES=triton.next_power_of_2(pieces)
    )
    return loss
