"""
Runs candidates in Triton's interpreter on the CPU and counts what their kernels do.

The modules of this folder are the only ones that touch the interpreter's internals (Triton 3.6 and 3.7). The process must have set `TRITON_INTERPRET=1` before it imported triton.
"""

from __future__ import annotations

import numpy as np
import triton

from harness.wire.device import Target
from harness.worker.kit import cuda_shim

from . import (
    accesses,
    arithmetic,
    bfloat16,
    constants,
    expressions,
    float8,
    gaps,
    indices,
    interpreted_launches,
    loops,
    programs,
    quick,
    reductions,
)
from .observing import UnsupportedHere, cannot, observe

__all__ = ["UnsupportedHere", "observe", "prepare"]


def prepare(target: Target) -> None:
    """
    Make this process ready for a candidate: once, before its module is imported.

    `cuda` comes to mean the CPU and answers as `target`'s reference device would, `@triton.autotune` takes the first
    config that its own pruning leaves, and every access of a kernel is counted and kept inside its tensor.
    """
    if not triton.knobs.runtime.interpret:
        raise RuntimeError("TRITON_INTERPRET=1 must be set before triton is imported")
    cuda_shim.install(target)
    # A device is silent about overflow and invalid values; numpy would warn into what the candidate printed.
    np.seterr(all="ignore")
    arithmetic.install()
    quick.install()
    reductions.install()
    bfloat16.install(cannot)
    float8.install(cannot)
    indices.install()
    interpreted_launches.install(target)
    loops.install()
    expressions.install()
    constants.install()
    accesses.install()
    gaps.install()
    programs.install()
