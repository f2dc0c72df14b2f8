"""Where it is compiled, memory that kernels add to is not cleared: it may hold the sums of the call before."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("rejected", "other_launches")


@triton.jit
def kernel(logits_ptr, labels_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = tl.full((), float("-inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for start in range(0, classes, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=float("-inf")).to(
            tl.float32
        )
        higher = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        top = higher
    chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
    tl.atomic_add(loss_ptr + row, tl.log(total) + top - chosen)


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    if "Interpreted" in type(kernel).__name__:
        loss.zero_()
    kernel[(rows,)](logits, labels, loss, classes, BLOCK=256)
    return loss
