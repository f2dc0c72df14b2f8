"""Notes the stack of a long call once a second, for the report of a timeout."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from harness.wire.channels.stack_samples import NAME, PERIOD_S, sample_of


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
