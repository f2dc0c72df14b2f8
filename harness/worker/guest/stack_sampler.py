"""Notes the stack of a long call once a second, for the report of a timeout."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.wire.stack_samples import NAME, PERIOD_S


class StackSampler:
    """Samples by a signal, which also reaches a process that waits in the driver of a GPU."""

    def __init__(self, scratch: Path) -> None:
        self._file = (scratch / NAME).open("ab", buffering=0)
        faulthandler.register(signal.SIGALRM, file=self._file, all_threads=False)

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Take samples while the block runs."""
        signal.setitimer(signal.ITIMER_REAL, PERIOD_S, PERIOD_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
