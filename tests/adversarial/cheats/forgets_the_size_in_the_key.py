"""The config that fits the first row length is kept for all others where configs are kept; here they are chosen anew in each call."""

import torch
import triton
import triton.language as tl

TASK = "softmax"
EXPECT = ("wrong", "mismatch")
DEVICE = "cpu"


def fitting(configs, named, **rest):
    fit = [one for one in configs if one.kwargs["BLOCK"] >= named["columns"]]
    return fit[:2]


@triton.autotune(
    configs=[triton.Config({"BLOCK": 1 << bits}, num_warps=4) for bits in range(15)],
    key=[],
    prune_configs_by={"early_config_prune": fitting},
)
@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
    return out
