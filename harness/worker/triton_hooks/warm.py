"""Does the slow first steps of Triton in advance, so that workers start with them done."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime import cache
from triton.runtime.jit import mangle_type

from harness.wire.device import Device
from harness.worker.kit import gpu


@triton.jit  # type: ignore[untyped-decorator]
def _copy(source, result, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803 -- triton's way
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + offsets, mask=offsets < count)
    tl.store(result + offsets, tl.exp(values) + tl.sum(values, axis=0), mask=offsets < count)


def name_triton_by_version() -> None:
    """Let the names of compiled kernels hold Triton's version, and not the hash of its library of 460 MB.

    The hash takes half a second in each process that compiles first. Our folders of compiled kernels end with their pool, so
    one Triton writes all of their files.
    """
    cache.triton_key = lambda: triton.__version__


def specialise_once() -> None:
    """Specialise one kernel argument: at the first argument Triton (3.7) imports its language Gluon."""
    mangle_type(1)


def compile_once() -> None:
    """Compile for gfx942 and drop the result. Starts no thread and uses no driver."""
    types = {"source": "*fp32", "result": "*fp32", "count": "i32", "BLOCK": "constexpr"}
    source = ASTSource(fn=_copy, signature=types, constexprs={(3,): 256})
    with tempfile.TemporaryDirectory(prefix="wavedeck-warm-") as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        triton.compile(source, target=GPUTarget("hip", "gfx942", 64))


def warm_gpu(device: Device) -> None:
    """Do the slow first steps on a GPU before the first request arrives. Errors are ignored: the request raises them again."""
    with suppress(Exception):
        start_gpu(device)
        memory = torch.zeros(256, device=gpu.HERE)
        _copy[(1,)](memory, torch.empty_like(memory), memory.numel(), BLOCK=256)
        torch.cuda.synchronize()


def start_gpu(device: Device) -> None:
    """Start the GPU runtime and build Triton's driver, before foreign code runs."""
    gpu.start(device)
    _name_driver_library()
    triton.runtime.driver.active.get_current_target()


def _name_driver_library() -> None:
    """Spare Triton's NVIDIA driver a call of `ldconfig`: name the folder of `libcuda`, which the process has mapped by now."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        file = line.rpartition(" ")[2]
        if "/libcuda.so" in file:
            # The mapped file has a version in its name; Triton needs the folder that holds `libcuda.so.1`.
            folder = Path(file).parent
            if (folder / "libcuda.so.1").exists():
                os.environ.setdefault("TRITON_LIBCUDA_PATH", str(folder))
            return
