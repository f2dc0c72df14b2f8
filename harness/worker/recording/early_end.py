"""Ends the run of a script early."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

AGAIN_S = 1.0
"""CPU seconds after which `EndsHere` is raised again, for code that catches everything."""


class EndsHere(BaseException):
    """Ends a script. `except Exception` in the script does not catch it."""


class TimeLimit:
    """Raises `EndsHere` in its block after some CPU seconds, as soon as `may_end()` is true."""

    def __init__(self, seconds: float, may_end: Callable[[], bool] = lambda: True) -> None:
        self._seconds = seconds
        self._may_end = may_end
        self.is_over = False
        """True if the block took longer."""

    def __enter__(self) -> None:
        self._previous = signal.signal(signal.SIGPROF, self._end)
        signal.setitimer(signal.ITIMER_PROF, self._seconds, AGAIN_S)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, self._previous)

    def _end(self, *_: Any) -> None:
        self.is_over = True
        if self._may_end():
            raise EndsHere
