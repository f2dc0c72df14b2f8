"""What stands for a compiled kernel where nothing is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from harness.wire.device import Target

from . import cuda_shim


def stub(target: Target, options: Mapping[str, Any]) -> SimpleNamespace:
    """
    What `kernel.warmup` and a launch give under the interpreter, and where launches are only noted, to be held beside its own.

    Persistent kernels size their grid by it; any grid is right, so modest numbers do. They are shown nowhere.
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
