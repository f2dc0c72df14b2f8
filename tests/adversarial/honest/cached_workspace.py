"""Scratch memory for partial sums is kept between calls and never returned."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"


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


_workspaces = {}


def _workspace(size, device):
    kept = _workspaces.get(device)
    if kept is None or kept.numel() < size:
        kept = _workspaces[device] = torch.empty(size, dtype=torch.float32, device=device)
    return kept


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    pieces = triton.cdiv(classes, 1024)
    scratch = _workspace(2 * rows * pieces, logits.device)
    top, total = scratch[: rows * pieces], scratch[rows * pieces : 2 * rows * pieces]
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    pieces_kernel[(rows, pieces)](logits, top, total, classes, pieces, BLOCK=1024)
    merge_kernel[(rows,)](
        logits, labels, top, total, loss, classes, pieces, PIECES=triton.next_power_of_2(pieces)
    )
    return loss
