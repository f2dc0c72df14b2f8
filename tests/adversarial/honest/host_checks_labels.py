"""In debugging, the host reads all labels of a small call and refuses those that name no class."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"


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


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    if rows <= 64:
        wrong = [label for label in labels.tolist() if not 0 <= label < classes]
        if wrong:
            raise ValueError(f"labels {wrong} name no class")
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    loss_kernel[(rows,)](logits, labels, loss, classes, BLOCK=triton.next_power_of_2(classes))
    return loss
