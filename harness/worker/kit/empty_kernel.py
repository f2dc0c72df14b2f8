"""A kernel that does nothing. Its duration between two events is the shortest time that this device can measure."""

from __future__ import annotations

import triton


@triton.jit  # type: ignore[untyped-decorator]
def empty() -> None:
    """Do nothing."""


def compile_ahead() -> None:
    """Compile it without a launch."""
    empty.warmup(grid=(1,))


def launch(number: int) -> None:
    """Launch one program."""
    del number
    empty[(1,)]()
