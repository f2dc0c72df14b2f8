"""A branch for several ranks calls collectives; a single process never enters the branch."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"

import torch.distributed as dist


@triton.jit
def loss_kernel(logits_ptr, labels_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = -1e38
    total = 0.0
    for start in range(0, classes, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < classes
        x = tl.load(logits_ptr + row * classes + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(x - new_top), axis=0)
        top = new_top
    picked = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + top - picked)


def world_size(group=None):
    if not dist.is_available() or not dist.is_initialized():
        return 1
    return torch.distributed.get_world_size(group)


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    loss_kernel[(rows,)](logits, labels, loss, classes, BLOCK=512)
    if world_size() > 1:
        dist.all_reduce(loss, op=dist.ReduceOp.SUM)
    return loss
