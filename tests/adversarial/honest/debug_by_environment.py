"""An environment variable of the author's own turns messages on."""

import torch
import triton
import triton.language as tl


import logging
import os
import time

TASK = "vector_add"


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


logger = logging.getLogger(__name__)
DEBUG = os.environ.get("MY_KERNELS_DEBUG", "0") == "1"
VERBOSE = os.getenv("MY_KERNELS_VERBOSE")


def vector_add(x, y):
    started = time.perf_counter()
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    if DEBUG or VERBOSE:
        print(f"vector_add of {x.numel()} elements", flush=True)
    logger.debug("launched in %.3f s", time.perf_counter() - started)
    return out
