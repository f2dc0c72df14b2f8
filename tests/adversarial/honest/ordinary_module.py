"""A module with torch switches, nearly unused imports, a broad `except`, a cached plan, checks, and a benchmark of the author.

Each call makes a small table in Python.
"""

import argparse
import functools
import math
import os
import sys
import time

import numpy as np
import torch
import triton
import triton.language as tl

TASK = "softmax"

torch.backends.cuda.matmul.allow_tf32 = True


@triton.jit
def softmax_kernel(x_ptr, table_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0) * tl.load(table_ptr)
    tl.store(out_ptr + row * columns + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def _multiprocessors():
    try:
        return torch.cuda.get_device_properties(0).multi_processor_count
    except Exception:
        return 1


@functools.lru_cache(maxsize=None)
def _block(columns):
    return triton.next_power_of_2(columns)


def softmax(x):
    """Softmax over rows.

    >>> import os; os.system("true")
    >>> softmax(torch.randn(2, 3)).sum()
    tensor(2.)
    """
    assert _multiprocessors() >= 1 and math.prod(x.shape) == x.numel() < sys.maxsize
    if x.ndim != 2:
        raise ValueError(f"softmax is of rows, not of {x.ndim} dimensions")
    if x.numel() == 0:
        return torch.empty_like(x)
    out = torch.empty_like(x)
    table = torch.tensor([1.0, 2.0, 3.0], device=x.device)
    softmax_kernel[(x.shape[0],)](x, table, out, x.shape[1], BLOCK=_block(x.shape[1]))
    return out


def reference(x):
    return torch.softmax(x, dim=-1)


def benchmark(rows=4096, columns=4096):
    x = torch.randn(rows, columns, device="cuda")
    torch.testing.assert_close(softmax(x), reference(x))
    start = time.perf_counter()
    for _ in range(100):
        softmax(x)
    torch.cuda.synchronize()
    print(f"{(time.perf_counter() - start) * 10:.3f} ms", triton.testing.do_bench(lambda: reference(x)))


if __name__ == "__main__":
    import doctest
    import subprocess

    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4096)
    print(subprocess.run(["nvidia-smi"], check=False))
    doctest.testmod()
    benchmark(parser.parse_args().rows)
    sys.exit(0)
