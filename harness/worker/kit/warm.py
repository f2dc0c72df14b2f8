"""Compiles and launches a small kernel in advance, so that every forked worker starts with Triton already set up."""

from __future__ import annotations

import tempfile

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import mangle_type


@triton.jit  # type: ignore[untyped-decorator]
def _copy(source, result, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803 -- triton's way
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + offsets, mask=offsets < count)
    tl.store(result + offsets, tl.exp(values) + tl.sum(values, axis=0), mask=offsets < count)


def specialise_once() -> None:
    """Specialise one kernel argument: at the first argument Triton (3.7) imports its language Gluon."""
    mangle_type(1)


def launch_once(device: torch.device) -> None:
    """Compile, load and launch the kernel on a GPU."""
    memory = torch.zeros(256, device=device)
    _copy[(1,)](memory, torch.empty_like(memory), memory.numel(), BLOCK=256)
    torch.cuda.synchronize()


def compile_once() -> None:
    """Compile for gfx942 and drop the result. Starts no thread and uses no driver."""
    types = {"source": "*fp32", "result": "*fp32", "count": "i32", "BLOCK": "constexpr"}
    source = ASTSource(fn=_copy, signature=types, constexprs={(3,): 256})
    with tempfile.TemporaryDirectory(prefix="wavedeck-warm-") as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
