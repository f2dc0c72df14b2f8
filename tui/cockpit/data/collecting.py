"""Keeps Python's garbage collector away from the millions of objects of a long session while it is open."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def many_objects_stay() -> Iterator[None]:
    """Create objects that stay until `objects_may_go`: no collection looks at them.

    Each full collection would visit all of them, which holds the screen for most of a second.
    """
    was_enabled = gc.isenabled()
    gc.collect()  # closed screens that are not collected yet would stay too
    gc.disable()
    try:
        yield
    finally:
        objects_stay()
        if was_enabled:
            gc.enable()


def objects_stay() -> None:
    """Let no collection look at the objects that exist now, until `objects_may_go`."""
    gc.freeze()


def objects_may_go() -> None:
    """Let collections look at all objects again: of those that stayed, some are screens that are closed now."""
    gc.unfreeze()
