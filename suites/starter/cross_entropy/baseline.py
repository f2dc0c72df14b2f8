"""Plain Triton `cross_entropy`: one row a program, taken in blocks with a running maximum and a rescaled sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(logits_ptr, labels_ptr, loss_ptr, classes, BLOCK: tl.constexpr):
    """The loss of one row."""
    row = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + row * classes
    maximum = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        logits = tl.load(row_ptr + offsets, mask=offsets < classes, other=-float("inf")).to(tl.float32)
        new_maximum = tl.maximum(maximum, tl.max(logits, axis=0))
        total = total * tl.exp(maximum - new_maximum) + tl.sum(tl.exp(logits - new_maximum), axis=0)
        maximum = new_maximum
    label = tl.load(labels_ptr + row)
    chosen = tl.load(row_ptr + label).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (maximum - chosen))


def cross_entropy(logits, labels):
    """Cross entropy of each row of logits."""
    rows, classes = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    block = min(4096, triton.next_power_of_2(classes))
    cross_entropy_kernel[(rows,)](logits, labels, loss, classes, BLOCK=block, num_warps=8)
    return loss
