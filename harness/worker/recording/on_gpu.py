"""Counts and notes launches and skips tuning, for recordings on a GPU.

Patches internals of Triton's autotuner and of its compiled kernels (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from triton import knobs
from triton.compiler.compiler import CompiledKernel
from triton.runtime import autotuner

_IMPOSSIBLE = [float("inf")] * 3


class LaunchCount:
    """Launches of one call. It has the names of the interpreter's observation that `HostOperators` reads."""

    launching = False

    def __init__(self) -> None:
        self.launches = 0

    def wrote(self, tensor: torch.Tensor) -> bool:
        """Always true: a GPU does not report which memory a kernel wrote."""
        return True


@contextmanager
def count_launches(_: Mapping[str, torch.Tensor]) -> Iterator[LaunchCount]:
    """Count the launches of the block."""
    count = LaunchCount()

    def note(_: Any) -> None:
        count.launches += 1

    knobs.runtime.launch_enter_hook.add(note)
    try:
        yield count
    finally:
        knobs.runtime.launch_enter_hook.remove(note)


@contextmanager
def noted_launches(note: Callable[[str, Mapping[str, Any]], None]) -> Iterator[None]:
    """Call `note` with the Triton IR of the kernel and with its arguments, for each launch of the block."""
    original = CompiledKernel.launch_metadata

    def launch_metadata(kernel: Any, grid: Any, stream: Any, *values: Any) -> Any:
        names = getattr(getattr(kernel.src, "fn", None), "arg_names", ())
        note(kernel.asm.get("ttir", ""), dict(zip(names, values, strict=False)))
        return original(kernel, grid, stream, *values)

    CompiledKernel.launch_metadata = launch_metadata
    try:
        yield
    finally:
        CompiledKernel.launch_metadata = original


def take_first_configs() -> None:
    """Let autotuned kernels take the first config that runs, because a recording times nothing. Call once a process."""
    bench = autotuner.Autotuner._bench

    def run_first(self: Any, *args: Any, **options: Any) -> Any:
        if getattr(self, "_wavedeck_has_run", None) is self.nargs:
            return _IMPOSSIBLE
        self._do_bench = _run_once
        times = bench(self, *args, **options)
        if times != _IMPOSSIBLE:
            self._wavedeck_has_run = self.nargs
        return times

    autotuner.Autotuner._bench = run_first


def _run_once(call: Any, **_: Any) -> list[float]:
    call()
    return [1.0] * 3
