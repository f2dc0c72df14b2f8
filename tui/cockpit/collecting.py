"""Keeps Python's garbage collector away from the millions of objects of a long session."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def many_objects_stay() -> Iterator[None]:
    """Create objects that stay for long: no collection looks at them, now or later.

    Each full collection would visit all of them, which holds the screen for most of a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
