"""Stub of a compiled kernel, for the interpreter and for workers that only record launches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from harness.wire.device import Target

from . import cuda_shim


class StubKernel(SimpleNamespace):
    """A stub with the attributes of a compiled kernel. `stub[grid](...)` calls `launch(grid, ...)`."""

    launch: Callable[..., Any]

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.launch, grid)


def stub(target: Target, options: Mapping[str, Any], launch: Callable[..., Any]) -> StubKernel:
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
    return StubKernel(
        launch=launch,
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
