"""The candidate's error after a failure of its process, which ends its trial or its timing."""

from __future__ import annotations

import re

from harness.wire.messages.guest import OUT_OF_MEMORY
from harness.wire.results.evaluation import ErrorReport
from harness.worker.oracle.comparison.mismatch_wording import CaseError

from .lines import CandidateRaised, GuestLied, GuestSlow, NoAnswer

_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
_MEMORY_SENTENCES = 3
"""Sentences kept of torch's out-of-memory message: the error, the requested bytes, the free bytes.

The rest names processes and settings.
"""


class CandidateStopped(Exception):
    """Ends a trial or a timing with this error of the candidate."""

    def __init__(self, error: ErrorReport, further_failures: tuple[CaseError, ...] = ()) -> None:
        """`further_failures` are of the same call."""
        super().__init__(error.message)
        self.error, self.further_failures = error, further_failures


def blame(failure: NoAnswer, case: str, lead: str, *, gpu: bool) -> ErrorReport:
    """Return the candidate's error after its process failed.

    `case` is empty if the failure was in the import. `lead` begins the message of an exception.
    """
    match failure:
        case CandidateRaised(failure=raised):
            message = lead + raised.message
            return ErrorReport(kind=raised.kind, message=message, trace=raised.trace, line=raised.line)
        case GuestSlow():
            return _too_slow(failure, _place(case), gpu=gpu)
        case GuestLied():
            message = f"the candidate interfered with the judge's channel: {failure}"
            return ErrorReport(kind="tampering", message=message)
        case _:  # the process is gone; the parent adds how
            place = _place(case)
            return ErrorReport(kind="exit", message=f"the process ended in {place}", place=place)


def is_memory(failure: NoAnswer) -> bool:
    """Whether the device was full: no fault of the candidate, as several processes share it, each with copies of the inputs."""
    return isinstance(failure, CandidateRaised) and failure.failure.kind == OUT_OF_MEMORY


def in_one_line(message: str) -> str:
    """The first line of a failure message; of an out-of-memory message only the first sentences."""
    line = message.partition("\n")[0]
    return " ".join(_SENTENCE.split(line)[:_MEMORY_SENTENCES]) if "out of memory" in line else line


def _place(case: str) -> str:
    return f"case {case}" if case else "the import"


def _too_slow(slow: GuestSlow, place: str, *, gpu: bool) -> ErrorReport:
    """Return the error of a step that ran out of time, with advice for the device. `where` names the step."""
    limit = f"{slow.seconds:g} s of {'CPU' if slow.cpu else 'wall'} time"
    if gpu:
        message = (
            f"{place} did not finish within {limit} on the GPU, compilation included; "
            "a loop in a kernel or around it may never end: check loop bounds, or try fewer autotune configs"
        )
    else:
        message = (
            f"{place} did not finish within {limit} in the interpreter; a loop may never end, or "
            "there are very many small programs (about 1 ms each): check loop bounds, or use larger blocks"
        )
    return ErrorReport(kind="timeout", message=message, place=place)
