"""Stub of a compiled kernel, for the interpreter and for workers that only record launches."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from harness.wire.device import Target

from . import cuda_shim


def stub(target: Target, options: Mapping[str, Any]) -> SimpleNamespace:
    """
    The return value of `kernel.warmup` and of a launch where no kernel is compiled.

    Persistent kernels size their grid by its numbers. Any grid is correct, so modest numbers suffice. No report shows them.
    """
    metadata = SimpleNamespace(
        shared=1024,
        num_warps=options.get("num_warps", 4),
        num_stages=options.get("num_stages", 2),
        num_ctas=1,
    )
    return SimpleNamespace(
        n_regs=64,
        n_spills=0,
        n_max_threads=1024,
        metadata=metadata,
        asm={},
        function=0,
        num_warps=metadata.num_warps,
        shared=metadata.shared,
        target=cuda_shim.gpu_target(target),
        _init_handles=lambda: None,
    )
