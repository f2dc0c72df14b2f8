"""The entry point is an object with `__call__` that stores its options."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"


@triton.jit
def loss_kernel(logits_ptr, labels_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * classes + offsets, mask=offsets < classes, other=-float("inf")).to(
            tl.float32
        )
        higher = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        top = higher
    chosen = tl.load(logits_ptr + row * classes + tl.load(labels_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (top - chosen))


class CrossEntropy:
    def __init__(self, block):
        self.block = block
        self.launches = 0

    def __call__(self, logits, labels):
        rows, classes = logits.shape
        loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
        loss_kernel[(rows,)](logits, labels, loss, classes, BLOCK=self.block)
        self.launches += 1
        return loss


cross_entropy = CrossEntropy(block=1024)
