"""An autotuned kernel works in place; the autotuner restores its memory between runs."""

import torch
import triton
import triton.language as tl

TASK = "softmax"


def by_rows(configs, named, **rest):
    if named["rows"] < 8:
        return [one for one in configs if one.num_warps < 8]
    return [one for one in configs if one.num_warps > 2]


@triton.autotune(
    configs=[triton.Config({"STEP": step}, num_warps=warps) for step in (1, 2) for warps in (2, 4, 8)],
    key=["columns"],
    prune_configs_by={"early_config_prune": by_rows},
    restore_value=["x_ptr"],
)
@triton.jit
def softmax_kernel(x_ptr, rows, columns, STEP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0) * STEP, min(rows, tl.program_id(0) * STEP + STEP)):
        mask = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        out = e / tl.sum(e, axis=0)
        tl.store(x_ptr + row * columns + offsets, out.to(x_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    out = x.clone(memory_format=torch.contiguous_format)
    rows, columns = x.shape
    softmax_kernel[lambda meta: (triton.cdiv(rows, meta["STEP"]),)](
        out, rows, columns, BLOCK=triton.next_power_of_2(columns)
    )
    return out
