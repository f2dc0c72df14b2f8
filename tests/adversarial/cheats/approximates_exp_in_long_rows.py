"""A polynomial for the exponential in rows of more than 6,400 classes: errors of thousands of terms cancel, those of the few classes that share a row's mass do not."""

import torch
import triton
import triton.language as tl

TASK = "cross_entropy"
EXPECT = ("wrong", "mismatch")
CASES = ("fp32-one-row",)


@triton.jit
def crude_exp2(t):
    whole = tl.floor(t)
    part = t - whole
    value = 1.0 + part * (0.659 + 0.341 * part)
    bits = (tl.maximum(whole, -126.0).to(tl.int32) + 127) << 23
    return tl.where(t < -126.0, 0.0, value * bits.to(tl.float32, bitcast=True))


@triton.jit
def loss_kernel(logits_ptr, labels_ptr, out_ptr, classes, BLOCK: tl.constexpr, CRUDE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    base = logits_ptr + row * classes
    lane = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        x = tl.load(base + at, mask=at < classes, other=-float("inf")).to(tl.float32)
        top = tl.maximum(top, x)
    most = tl.max(top, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    if CRUDE and most < 40.0:
        for start in range(0, classes, BLOCK):
            at = start + lane
            x = tl.load(base + at, mask=at < classes, other=-float("inf")).to(tl.float32)
            t = tl.maximum((x - most) * 1.4426950408889634, -200.0)
            total += crude_exp2(t)
    else:
        for start in range(0, classes, BLOCK):
            at = start + lane
            x = tl.load(base + at, mask=at < classes, other=-float("inf")).to(tl.float32)
            total += tl.exp(x - most)
    label = tl.load(labels_ptr + row)
    chosen = tl.load(base + label).to(tl.float32)
    tl.store(out_ptr + row, tl.log(tl.sum(total, axis=0)) + (most - chosen))


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    out = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    block = min(4096, triton.next_power_of_2(classes))
    loss_kernel[(rows,)](logits, labels, out, classes, BLOCK=block, CRUDE=classes > 6400, num_warps=8)
    return out
