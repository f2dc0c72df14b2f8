"""Limits the CPU seconds of one candidate's samples; a case over its limit gets no sample."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.wire.limits import SAMPLE_CPU_S
from harness.worker.interpreter.observing import cannot, current

AGAIN_S = 0.25
"""CPU seconds until the next interrupt, for a candidate that catches the exception of the first."""


class Budget:
    """CPU seconds, shared evenly among the remaining cases; a case's unused seconds pass to the later cases."""

    def __init__(self, cases: int, seconds: float = SAMPLE_CPU_S) -> None:
        self._cases = cases
        self._total_s = seconds
        self._remaining_s = seconds

    @contextmanager
    def case(self) -> Iterator[None]:
        """Run one case: when its share is used up, the running code raises and the observation notes why."""
        share = max(self._remaining_s / max(self._cases, 1), AGAIN_S)
        began = time.process_time()

        def spent(*_: Any) -> None:
            if current() is not None:
                raise cannot(
                    f"the sample would take more than {share:.1f} s of CPU time, this case's share of {self._total_s:g} s: "
                    "its programs are long, as those of grid-stride and persistent kernels are"
                )

        before = signal.signal(signal.SIGPROF, spent)
        signal.setitimer(signal.ITIMER_PROF, share, AGAIN_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
            self._cases -= 1
            self._remaining_s = max(self._remaining_s - (time.process_time() - began), 0.0)
