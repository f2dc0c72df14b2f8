"""One voice on standard error, and what each ending of the program is called."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """What the shell is told."""

    DONE = 0
    """`eval`: correct; `run`: the session ended in order, solved or not."""
    NO = 1
    """The answer is no: `eval` with any other verdict, `suites check` with findings."""
    USAGE = 2
    """What was asked for cannot be done as asked; nothing was started."""
    FAILED = 3
    """The machinery failed, and nothing is said about any candidate."""
    INTERRUPTED = 130


class Complaint(Exception):
    """A command ends here: one line that says what is wrong and what to do."""

    def __init__(self, message: str, *, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


class OutputGone(Exception):
    """Standard output takes no more: a pager was left, a terminal was closed, or `why` says what else."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


def say(message: str) -> None:
    """Tell the person one line on standard error; where that is closed too there is nobody to tell."""
    if sys.stderr is None:
        return
    line = f"wavedeck: {one_line(message)}\n"
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError):
        silence(2)


def silence(descriptor: int) -> None:
    """Let what is still to be written on a vanished stream end nowhere, also in the interpreter's own last flush."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def one_line(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would act on."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    r"""The text with control characters shown (`\x1b`) instead of sent; line ends and tabs stay.

    What models and candidates print is shown to people and must not steer their terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def code_of(error: BaseException) -> ExitCode | None:
    """How the program ends over an error that a room foresaw; `None` for one that nobody did."""
    if isinstance(error, Complaint):
        return error.code
    # Loaded here: a command that did not fail has no use for every room's errors.
    from engine.errors import EngineError, UsageProblem
    from harness.wire.errors import HarnessError, UnknownDevice, UnknownTarget
    from sessions import errors as sessions
    from suites.errors import SuiteError

    wrong_usage = (
        UsageProblem,
        UnknownDevice,
        UnknownTarget,
        SuiteError,
        sessions.SessionBusy,
        sessions.NothingToResume,
        sessions.NoSuchSession,
        sessions.AmbiguousSession,
        sessions.NoSuchAttempt,
        sessions.NotDecidable,
        sessions.BadRecording,
    )
    if isinstance(error, wrong_usage):
        return ExitCode.USAGE
    if isinstance(error, EngineError | HarnessError | sessions.SessionsError):
        return ExitCode.FAILED
    return None


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group of groups, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    else:
        yield error


def report(error: BaseException, *, crashes: Path) -> ExitCode:
    """Tell of an error in one line each; what nobody foresaw leaves its traceback in a file that is named."""
    worst = ExitCode.DONE
    for each in leaves(error):
        code = code_of(each)
        if code is None:
            what = one_line(f"{type(each).__name__}: {each}")
            say(f"unexpected {what}; the traceback is in {write_crash(each, crashes)}")
            code = ExitCode.FAILED
        else:
            say(str(each))
        worst = max(worst, code)
    return worst


def write_crash(error: BaseException, crashes: Path) -> Path:
    """Put the traceback of an error into a file of `crashes`, or of the temporary folder; returns the file."""
    head = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, Python {platform.python_version()}, {platform.platform()}\n\n"
    text = head + "".join(traceback.format_exception(error))
    try:
        crashes.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _write_crash(text, crashes)
    except OSError:
        return _write_crash(text, Path(tempfile.gettempdir()))


def _write_crash(text: str, folder: Path) -> Path:
    descriptor, name = tempfile.mkstemp(
        prefix=f"wavedeck-{datetime.now(UTC):%Y%m%d-%H%M%S}-", suffix=".txt", dir=folder
    )
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return Path(name)
