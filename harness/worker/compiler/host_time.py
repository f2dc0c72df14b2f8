"""Limits the CPU time of a candidate's host code at `gpu` sizes. The compiler's own time does not count."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_S = 1.0
"""CPU seconds after which `HostTooSlow` is raised again, for code that catches everything."""


class HostTooSlow(BaseException):
    """Ends a call whose host code used up its CPU time."""


class HostTime:
    """Raises `HostTooSlow` in its block after some CPU seconds of this process."""

    def __init__(self, module: str, seconds: float) -> None:
        self._module = module
        self._seconds = seconds
        self.line: int | None = None
        """The innermost line of the candidate's `module` when the time was over."""

    def __enter__(self) -> None:
        signal.signal(signal.SIGPROF, self._end)
        signal.setitimer(signal.ITIMER_PROF, self._seconds, AGAIN_S)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)

    def _end(self, _: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code.co_filename != self._module:
            frame = frame.f_back
        if frame is not None:
            self.line = frame.f_lineno
            raise HostTooSlow


@contextmanager
def not_counted() -> Iterator[None]:
    """Stop the clock of the running `HostTime` while the block runs."""
    left_s, _ = signal.setitimer(signal.ITIMER_PROF, 0.0)
    try:
        yield
    finally:
        if left_s:
            signal.setitimer(signal.ITIMER_PROF, left_s, AGAIN_S)
