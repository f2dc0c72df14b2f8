"""Runs candidates in Triton's interpreter on the CPU and counts what their kernels do.

Only the modules of this folder touch the interpreter's internals (Triton 3.5 to 3.7). The process must set
`TRITON_INTERPRET=1` before it imports triton.
"""

from __future__ import annotations

import numpy as np
import triton

from harness.wire.device import Target
from harness.worker.interpreter import accesses, hints, indices, interpreted_launches
from harness.worker.interpreter.semantics import (
    aliases,
    arithmetic,
    expressions,
    float_hooks,
    gaps,
    loops,
    reductions,
)
from harness.worker.interpreter.tapes import programs
from harness.worker.triton_hooks import older_interpreter, stub_driver
from harness.worker.triton_hooks.autotuning import Mode, policy

from .observing import UnsupportedHere, observe

__all__ = ["UnsupportedHere", "observe", "prepare"]


def prepare(target: Target) -> None:
    """Prepare this process for a candidate: once, before its module is imported.

    `cuda` then means the CPU and answers as `target`'s reference device would. `@triton.autotune` takes the first config
    that its own pruning leaves. Every access of a kernel is counted and kept inside its tensor.
    """
    if not triton.knobs.runtime.interpret:
        raise RuntimeError("TRITON_INTERPRET=1 must be set before triton is imported")
    older_interpreter.install()
    stub_driver.install(target)
    # A device is silent about overflow and invalid values; numpy would print warnings into the candidate's output.
    np.seterr(all="ignore")
    for module in (arithmetic, reductions, float_hooks, hints, indices):
        module.install()
    for module in (aliases, loops, expressions, accesses, gaps, programs):
        module.install()
    interpreted_launches.install(target)
    policy.mode = Mode.FIRST
    policy.install()
