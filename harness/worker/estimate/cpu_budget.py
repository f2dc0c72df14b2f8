"""CPU seconds that the samples of one candidate may take; a sample that takes more is left out."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.worker.interpreter.observing import cannot, current

SAMPLE_CPU_S = 3.0
"""All cases of a candidate together, without the import of its module."""
AGAIN_S = 0.25
"""A candidate that catches what ends its sample is interrupted again after so many CPU seconds."""


class Budget:
    """Shared out evenly among the cases that are left: what one case does not use, the next cases may."""

    def __init__(self, cases: int, seconds: float = SAMPLE_CPU_S) -> None:
        self._cases = cases
        self._whole = seconds
        self._left = seconds

    @contextmanager
    def case(self) -> Iterator[None]:
        """One case: whatever runs when its share is spent raises, and the running observation notes why."""
        share = max(self._left / max(self._cases, 1), AGAIN_S)
        began = time.process_time()

        def spent(*_: Any) -> None:
            if current() is not None:
                raise cannot(
                    f"the sample would take more than {share:.1f} s of CPU time, this case's share of {self._whole:g} s: "
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
            self._left = max(self._left - (time.process_time() - began), 0.0)
