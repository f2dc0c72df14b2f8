"""Decides what the end of a candidate's process means, and whether that is in doubt. The table is in `docs/trust.md`."""

from __future__ import annotations

import os
import re
import signal
from typing import NamedTuple

from harness.wire import limits
from harness.wire.errors import WorkerDied
from harness.wire.messages.judge import Failure
from harness.wire.messages.server import Ended, status_words
from harness.wire.results.evaluation import ErrorReport

from .starting.servers import Child

_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
"""Signals that no fault of a kernel raises: the kernel's OOM killer and those in user space send them."""
_HINTS: dict[int, str] = {
    signal.SIGKILL: "also when it was judged alone; the machine ran out of memory, most likely, so use less of it",
    signal.SIGSEGV: "an access outside its memory",
    signal.SIGXFSZ: f"a file beyond {limits.memory_words(limits.FILE_BYTES)}",
}
_NO_MEMORY = ("MemoryError", "Cannot allocate memory", "can't allocate memory")
_STARVED = re.compile(
    r"`ptxas` failed with error code -(9|15)\b|\[Errno (11|12|28|122)\]"  # killed; no process, memory, disk, quota
)
_NO_DISK = ("No space left on device", "Disk quota exceeded")
_NO_PROCESSES = ("can't start new thread", "Resource temporarily unavailable")


class Blame(NamedTuple):
    """The candidate's error after a process ended, or after the machine lacked something."""

    error: ErrorReport
    doubt: str = ""
    """Why the error may not be the candidate's: it counts only if it comes again (`harness/stages/retries.py`)."""


def doubt_end(ended: Ended, process: str) -> str:
    """Return the doubt about an end by a signal that no limit of the judge explains; empty for other ends.

    `process` names the process in the message. Raises `WorkerDied` for an end that was not observed.
    """
    if ended.lost:
        raise WorkerDied(f"{process} was lost: {ended.lost}")
    from_outside = os.WIFSIGNALED(ended.status) and os.WTERMSIG(ended.status) in _FROM_OUTSIDE
    if not from_outside or ended.killed or ended.why:
        return ""
    return f"{process} was killed by {status_words(ended.status)}, by no limit of the judge"


def error_of_end(ended: Ended, place: str) -> Blame:
    """Return the error of a process that ended early, in this place: `case fp32`, `the import`.

    Raises like `doubt_end`.
    """
    doubt = doubt_end(ended, "the candidate's process")
    if ended.killed:
        return Blame(ErrorReport(kind="tampering", message="the candidate closed the judge's channel"))
    if ended.why:
        message = f"the candidate had {ended.why}, which is more than a kernel needs, and was ended"
        return Blame(ErrorReport(kind="limit", message=message))
    how, where = status_words(ended.status), f"in {place}"
    if not os.WIFSIGNALED(ended.status):
        message = f"the candidate ended its process {where} ({how}); an entry point must return"
        return Blame(ErrorReport(kind="exit", message=message))
    number = os.WTERMSIG(ended.status)
    if number == signal.SIGXCPU:
        return Blame(ErrorReport(kind="timeout", message=f"CPU time ran out {where}"))
    hint = _HINTS.get(number, "")
    message = f"the process was killed by {how} {where}" + (f": {hint}" if hint else "")
    return Blame(ErrorReport(kind=how, message=message), doubt)


def compiler_error(ended: Ended) -> Blame:
    """Return the compile error after the end of the compile process. Raises like `doubt_end`."""
    doubt = doubt_end(ended, "the compile process")
    how = f"it had {ended.why}" if ended.why else status_words(ended.status)
    return Blame(ErrorReport(kind="compile", message=f"the compiler's process ended ({how})"), doubt)


def explain_compile_error(error: str) -> Blame:
    """Return a compile error, with advice if the machine lacked memory, processes or disk for the compiler, as for `ptxas`."""
    if not _STARVED.search(error):
        return Blame(ErrorReport(kind="compile", message=error))
    first_line, newline, rest = error.partition("\n")
    return Blame(
        ErrorReport(kind="compile", message=f"{first_line} ({_advice(error)}){newline}{rest}"),
        f"a program of the compiler was killed, did not start or could not write: {first_line}",
    )


def doubt_starved_call(error: ErrorReport | None) -> str:
    """Return the doubt about an exception of a call that a machine short of memory, processes or disk explains; else empty.

    For calls on a GPU, which compile. A candidate may raise such a text too: the second evaluation counts.
    """
    if error is None or error.kind != "exception" or not _STARVED.search(error.message):
        return ""
    return f"the machine lacked memory, a process or disk: {error.message.partition(chr(10))[0]}"


def error_of_broken(message: str, *, imported: bool) -> Blame:
    """Return the error if the judge's own code raised `message` in a process with the candidate.

    Raises `WorkerDied` if the candidate was not imported yet.
    """
    failure = f"the judge's code failed in the candidate's process: {message}"
    if not imported:
        raise WorkerDied(failure)
    return Blame(ErrorReport(kind="limit", message=f"{_advice(message)} ({message})"), failure)


def _advice(message: str) -> str:
    """Return what to do about an exception of the judge's code in the candidate's process, by the text of the exception."""
    if any(words in message for words in _NO_MEMORY):
        return "the candidate used up its memory; keep no large objects at module level or between calls"
    if any(words in message for words in _NO_PROCESSES):
        return "the candidate used up its processes and threads; a kernel module starts none"
    if any(words in message for words in _NO_DISK):
        return "also when it was judged alone; the judge's disk is full, so free space on it"
    if "ptxas" in message:
        return "also when it was judged alone; smaller blocks need less memory"
    return (
        "the judge cannot work in the candidate's process, also when it was judged alone; start no processes or threads, "
        "and leave the modules of Python and Triton as they are"
    )


def error_of_failure(failure: Failure, guest: Child, error: ErrorReport | None) -> Blame:
    """Return the candidate's error after a failure that the judge saw, and whether it is in doubt.

    `error` is the judge's own, with the step at that moment. Raises `WorkerDied` if the guest's end was not observed.
    """
    match failure:
        case Failure.GUEST_ENDED:
            return error_of_end(guest.ended.result(), error.place if error is not None else "")
        case Failure.GUEST_FAILED:
            return error_of_broken(error.message if error is not None else "", imported=True)
