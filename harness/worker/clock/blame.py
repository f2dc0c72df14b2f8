"""Decides what a timer's failure means for the candidate: a verdict on it, or a problem of the machine."""

from __future__ import annotations

import re

from harness.wire import findings
from harness.wire.evaluation import ErrorReport, Verdict
from harness.wire.guest_messages import OUT_OF_MEMORY
from harness.worker.oracle import mismatch_wording
from harness.worker.oracle.guest_link import CandidateRaised, GuestGone, GuestLied, GuestSlow

from .timer_link import Cause

_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
_MEMORY_SENTENCES = 3
"""Sentences kept of torch's out-of-memory message: the error, the requested bytes, the free bytes.

The rest names processes and settings.
"""


class Refused(Exception):
    """Timing contradicts the judge's verdict on the candidate."""

    def __init__(self, verdict: Verdict, error: ErrorReport) -> None:
        super().__init__(error.message)
        self.verdict, self.error = verdict, error


def is_memory(cause: Cause) -> bool:
    """Whether the device was full.

    That is no fault of the candidate: several processes share the device, each with copies of the inputs.
    """
    return isinstance(cause, CandidateRaised) and cause.failure.kind == OUT_OF_MEMORY


def in_one_line(message: str) -> str:
    """The first line of a failure message; of an out-of-memory message only the first sentences."""
    line = message.partition("\n")[0]
    return " ".join(_SENTENCE.split(line)[:_MEMORY_SENTENCES]) if "out of memory" in line else line


def blamed(cause: Cause, case: str) -> tuple[Verdict, ErrorReport]:
    """The verdict on a candidate after its timer failed. `case` is empty if the failure was in the import."""
    match cause:
        case CandidateRaised(failure=failure):
            where = f"case {case}" if case else "the import"
            error = ErrorReport(
                kind=failure.kind,
                message=f"while it was timed, {where}: {failure.message}",
                trace=failure.trace,
                line=failure.line,
            )
            return findings.verdict_of_failure(failure), error
        case GuestSlow(seconds=seconds, cpu=cpu):
            return Verdict.TIMEOUT, mismatch_wording.too_slow(seconds, case, cpu=cpu, gpu=True)
        case GuestLied():
            return Verdict.REJECTED, mismatch_wording.lied(str(cause))
        case GuestGone():
            return Verdict.CRASH, mismatch_wording.gone(case)
