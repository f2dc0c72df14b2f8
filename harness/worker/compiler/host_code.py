"""Limits a candidate's host code at `gpu` sizes: operators that compute, copies, reads of tensors, and CPU time.

The compiler's own time does not count.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from harness.wire import limits
from harness.wire.calls import operators
from harness.worker.kit.candidate_trace import calling_line
from harness.worker.kit.operator_mode import OperatorMode, copies_into_part

AGAIN_S = 1.0
"""CPU seconds after which `HostTooSlow` is raised again, for code that catches everything."""


class Computes(BaseException):
    """Ends a call, because its host code does the kernels' work: at `gpu` sizes that may take minutes on a CPU."""


class HostWork(OperatorMode):  # type: ignore[no-untyped-call]
    """Raises `Computes` at the first operator that may not run outside kernels, and notes whether Python read values.

    The judge's limit for copies into parts of tensors holds here too, as a GPU would reach it.
    """

    def __init__(self, module: str, allowed: tuple[str, ...]) -> None:
        super().__init__()
        self._module = module
        self._allowed = allowed
        self.operator = ""
        self.line: int | None = None
        self.copies = 0
        """Number of copies that write a part of a tensor."""
        self.operator_cpu_s = 0.0
        self.reads = False
        """Python read values, which are not the case's real values here; the launches may depend on them."""

    def _run(self, func: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run an operator of the host code, and count its CPU time and its copies.

        Raises `Computes` at the first operator that is not allowed outside kernels, or after too many copies. Its name stays
        noted.
        """
        if name == "_local_scalar_dense":
            self.reads = True
        elif not func.is_view and not self.operator:
            self.copies += copies_into_part(name, args)
            if self.copies > limits.COPIES or not operators.is_allowed(name, self._allowed):
                self.operator, self.line = name, calling_line(self._module)
                raise Computes
        began = time.process_time()
        try:
            return func(*args, **named)
        finally:
            self.operator_cpu_s += time.process_time() - began


class HostTooSlow(BaseException):
    """Ends a call: its host code used up its CPU time."""


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
        """Handle the timer's signal: if the candidate's module is running, note its line and raise `HostTooSlow`.

        Within code of ours alone, do nothing: the signal comes again.
        """
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
