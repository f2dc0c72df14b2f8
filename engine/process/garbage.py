"""Keeps the pauses of Python's cyclic garbage collector short while the state of a session grows."""

from __future__ import annotations

import gc
from collections.abc import Mapping

OLDEST = 2
THRESHOLDS = 700, 10, 3
"""New objects before a collection of the young, and collections of one generation before one of the next. The last is a third of
Python's, so that a collection of the oldest generation sees a third of the objects."""


def shorten_pauses() -> None:
    """Let a collection of the oldest generation look only at the objects since the one before.

    A session's events and states have no cycles and live to its end. Python would scan all of them whenever they grew by a
    quarter, and stop the event loop for that time. A cycle that is in use during such a collection is never freed.
    """
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.callbacks.append(_freeze_survivors)


def _freeze_survivors(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == OLDEST:
        gc.freeze()
