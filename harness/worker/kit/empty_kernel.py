"""A kernel that does nothing: what stands between two events around it is the floor of this device's clock."""

from __future__ import annotations

import triton


@triton.jit  # type: ignore[untyped-decorator]
def empty() -> None:
    """Nothing."""


def launch(number: int) -> None:
    """One program of it."""
    del number
    empty[(1,)]()
