"""How a candidate's process ended: the words for its exit status, and the verdict."""

from __future__ import annotations

import os
import signal

from harness.wire import limits
from harness.wire.evaluation import ErrorReport, Verdict
from harness.wire.server_messages import Ended

_NAMES: dict[int, str] = {number.value: number.name for number in signal.Signals}
"""Real-time signals between the first and the last have no name."""
_HINTS: dict[int, str] = {
    signal.SIGKILL: "the machine may be short of memory",
    signal.SIGSEGV: "an access outside its memory",
    signal.SIGXFSZ: f"a file beyond {limits.FILE_BYTES >> 20} MiB",
}


def status_words(status: int) -> str:
    """Return `SIGSEGV`, `signal 40` or `exit code 3` for a status of `os.waitpid`."""
    if not os.WIFSIGNALED(status):
        return f"exit code {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    return _NAMES.get(number, f"signal {number}")


def verdict_of(ended: Ended, where: str) -> tuple[Verdict, ErrorReport]:
    """Return the verdict on a process that ended early. `where` is the step at that moment, such as `in case fp32`."""
    if ended.killed:
        return Verdict.REJECTED, ErrorReport(
            kind="tampering", message="the candidate closed the judge's channel"
        )
    if ended.why:
        message = f"the candidate had {ended.why}, which is more than a kernel needs, and was ended"
        return Verdict.CRASH, ErrorReport(kind="limit", message=message)
    how = status_words(ended.status)
    if not os.WIFSIGNALED(ended.status):
        message = f"the candidate ended its process {where} ({how}); an entry point must return"
        return Verdict.CRASH, ErrorReport(kind="exit", message=message)
    number = os.WTERMSIG(ended.status)
    if number == signal.SIGXCPU:
        return Verdict.TIMEOUT, ErrorReport(kind="timeout", message=f"CPU time ran out {where}")
    hint = _HINTS.get(number, "")
    message = f"the process was killed by {how} {where}" + (f": {hint}" if hint else "")
    return Verdict.CRASH, ErrorReport(kind=how, message=message)
