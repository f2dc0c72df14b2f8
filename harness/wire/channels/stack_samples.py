"""The file in which a guest notes its stack once a second during a long call, so that a report of a timeout can name a line."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

NAME = ".stack"
PERIOD_S = 1.0
"""A call that ends sooner leaves no sample."""
_TAIL_BYTES = 16 << 10
_STACK = "most recent call first"
_MOST_FRAMES = 100
_FRAME = re.compile(r'File "[^"]*/kernel\.py", line (\d+)')


def sample_of(frame: FrameType | None) -> bytes:
    """Return the stack of a frame as `faulthandler` writes it."""
    lines = [f"Stack ({_STACK}):"]
    while frame is not None and len(lines) <= _MOST_FRAMES:
        lines.append(f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}')
        frame = frame.f_back
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def last_line(scratch: Path) -> int | None:
    """Return the candidate's line in the last sample; `None` if there is none.

    The file is evidence only: the candidate can write to it.
    """
    with suppress(OSError):
        descriptor = os.open(scratch / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            tail = os.pread(descriptor, _TAIL_BYTES, max(0, status.st_size - _TAIL_BYTES))
        finally:
            os.close(descriptor)
        frame = _FRAME.search(tail.decode("utf-8", "replace").rpartition(_STACK)[2])
        return int(frame[1]) if frame else None
    return None


class StackSampler:
    """Samples by a signal."""

    def __init__(self, scratch: Path, *, in_driver: bool) -> None:
        """`in_driver`: a call may wait in the driver of a GPU, where Python's own signal handlers do not run."""
        self._file = (scratch / NAME).open("ab", buffering=0)
        if in_driver:
            faulthandler.register(signal.SIGALRM, file=self._file, all_threads=False)
        else:
            # `faulthandler` crashes Python 3.11 if the signal comes while a frame is set up: once in a few minutes here.
            signal.signal(signal.SIGALRM, self._note)

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Take samples while the block runs."""
        signal.setitimer(signal.ITIMER_REAL, PERIOD_S, PERIOD_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _note(self, _: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            os.write(self._file.fileno(), sample_of(frame))
