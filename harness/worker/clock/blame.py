"""Whose fault it is that timing did not go on: what a failed timer says of the candidate in it."""

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
"""Of what torch says when a device is full: that it is, what was asked for, and what was free. The rest is of processes and settings."""


class Refused(Exception):
    """Timing shows that the candidate is not what it was judged to be."""

    def __init__(self, verdict: Verdict, error: ErrorReport) -> None:
        super().__init__(error.message)
        self.verdict, self.error = verdict, error


def is_memory(cause: Cause) -> bool:
    """Several processes with copies of the inputs share the device: that it is full is nobody's fault."""
    return isinstance(cause, CandidateRaised) and cause.failure.kind == OUT_OF_MEMORY


def in_one_line(message: str) -> str:
    """What a failure says, in its first line; of a full device only what was asked for and what was free."""
    line = message.partition("\n")[0]
    return " ".join(_SENTENCE.split(line)[:_MEMORY_SENTENCES]) if "out of memory" in line else line


def blamed(cause: Cause, case: str) -> tuple[Verdict, ErrorReport]:
    """The verdict on a candidate whose timer failed; `case` is empty where it was being imported."""
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
