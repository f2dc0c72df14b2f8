"""A typed, decorated wrapper with options, debug output by environment variable, no gradients, and a check at import."""

from __future__ import annotations

import functools
import logging
import os
import time
from typing import Optional, Union

import torch
import triton
import triton.language as tl

try:
    from triton.language.extra import libdevice
except Exception:
    libdevice = None
try:
    import some_library_that_is_not_here as optional
except ImportError:
    optional = None

TASK = "vector_add"

__all__ = ["vector_add"]
logger = logging.getLogger(__name__)
DEBUG = os.environ.get("MY_KERNELS_DEBUG", "0") == "1"
VERBOSE = os.getenv("MY_KERNELS_VERBOSE")
Size = Union[int, float]


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def checked(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        assert all(isinstance(one, torch.Tensor) for one in args)
        return function(*args, **kwargs)

    return inner


@torch.inference_mode()
def _out(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@checked
@torch.no_grad()
def vector_add(
    x: torch.Tensor, y: torch.Tensor, *, out: Optional[torch.Tensor] = None, block: Size = 1024
) -> torch.Tensor:
    """The sum of two vectors."""
    assert optional is None or hasattr(optional, "__version__")
    started = time.perf_counter()
    with torch.no_grad(), torch.set_grad_enabled(False), torch.cuda.device(x.device):
        result: torch.Tensor = torch.empty(x.shape, dtype=x.dtype, device=x.device) if out is None else out
        grid = (triton.cdiv(x.numel(), int(block)),)
        add_kernel[grid](x.detach(), y.detach(), result, x.numel(), BLOCK=int(block))
    if DEBUG or VERBOSE:
        print(f"vector_add of {x.numel()} elements", flush=True)
    logger.debug("launched in %.3f s", time.perf_counter() - started)
    return result


torch.manual_seed(0)
_a, _b = torch.randn(2, 64, device="cuda").unbind(0)
_check = torch.rand(3).sum() >= 0
assert bool(_check) and _a.shape == _b.shape
