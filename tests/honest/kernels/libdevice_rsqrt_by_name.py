"""Takes `rsqrt` by name from the first module that has it, as code for many Triton versions does."""

import torch
import triton
import triton.language as tl

TASK = "layer_norm"

if tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 0):
    try:
        from triton.language.extra.libdevice import rsqrt
    except ModuleNotFoundError:
        from triton.language.extra.cuda.libdevice import rsqrt
else:
    from triton.language.math import rsqrt


@triton.jit
def layer_norm_forward_kernel(
    Y_ptr,
    Y_row_stride,
    X_ptr,
    X_row_stride,
    W_ptr,
    B_ptr,
    n_cols,
    eps,
    BLOCK_SIZE: tl.constexpr,
):
    row_idx = tl.program_id(0).to(tl.int64)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    Y_ptr += row_idx * Y_row_stride
    X_ptr += row_idx * X_row_stride
    X_row = tl.load(X_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    W_row = tl.load(W_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    B_row = tl.load(B_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    mean = tl.sum(X_row, axis=0) / n_cols
    centered = tl.where(mask, X_row - mean, 0.0)
    rstd = rsqrt(tl.sum(centered * centered, axis=0) / n_cols + eps)
    tl.store(Y_ptr + col_offsets, centered * rstd * W_row + B_row, mask=mask)


def layer_norm(x, weight, bias, eps=1e-5):
    shape = x.shape
    x = x.view(-1, shape[-1])
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    num_warps = 16 if BLOCK_SIZE >= 8192 else 8 if BLOCK_SIZE >= 2048 else 4
    layer_norm_forward_kernel[(n_rows,)](
        y, y.stride(0), x, x.stride(0), weight, bias, n_cols, eps, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps
    )
    return y.view(*shape)
