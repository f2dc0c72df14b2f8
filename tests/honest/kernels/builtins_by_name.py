"""Imports language builtins by name; a branch for several ranks calls collectives, which one process never enters."""

import torch
import torch.distributed as dist
import triton.language as tl
from triton import jit, next_power_of_2
from triton.language import arange, exp, load, log, maximum, program_id, store, where

TASK = "cross_entropy"


@jit
def loss_kernel(logits_ptr, labels_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = program_id(0).to(tl.int64)
    top = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        offsets = start + arange(0, BLOCK)
        x = load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=-float("inf")).to(
            tl.float32
        )
        new_top = maximum(top, tl.max(x, axis=0))
        safe = where(new_top == -float("inf"), 0.0, new_top)
        total = total * exp(top - safe) + tl.sum(exp(x - safe), axis=0)
        top = new_top
    label = load(labels_ptr + row)
    picked = load(logits_ptr + row * classes + label).to(tl.float32)
    store(loss_ptr + row, log(total) + top - picked)


def world_size(group=None):
    if not dist.is_available() or not dist.is_initialized():
        return 1
    return torch.distributed.get_world_size(group)


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    loss = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    loss_kernel[(rows,)](logits, labels, loss, classes, BLOCK=min(1024, next_power_of_2(classes)))
    if world_size() > 1:
        dist.all_reduce(loss, op=dist.ReduceOp.SUM)
    return loss
