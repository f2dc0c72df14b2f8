"""Counts and notes launches, for recordings on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from triton import knobs

from harness.worker.triton_hooks.launches import handle_compiled_launches


class LaunchCount:
    """Launches of one call. It has the names of the interpreter's observation that `HostOperators` reads."""

    launching = False
    outside: Any = None
    """Not read: on a GPU, `guard_zones` are outside of tensors."""

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

    def handle(kernel: Any, _grid: Any, values: tuple[Any, ...]) -> None:
        names = getattr(getattr(kernel.src, "fn", None), "arg_names", ())
        note(kernel.asm.get("ttir", ""), dict(zip(names, values, strict=False)))

    end = handle_compiled_launches(handle)
    try:
        yield
    finally:
        end()
