"""Messages on standard error, exit codes, and reports of errors."""

from __future__ import annotations

import functools
import os
import platform
import shlex
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path

from .visible_text import replace_invisible


class ExitCode(IntEnum):
    """Exit codes of `wavedeck`."""

    DONE = 0
    """`eval`: the kernel is correct. `run`: the session ended in order, solved or not."""
    NO = 1
    """`eval`: any other verdict. `task check`: there are findings."""
    USAGE = 2
    """Wrong usage; nothing was started."""
    FAILED = 3
    """Wavedeck or the machine failed; this says nothing about a candidate."""
    INTERRUPTED = 130


class Complaint(Exception):
    """Ends a command with one line: the problem, and the next step for the user."""

    def __init__(self, message: str, *, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


class OutputGone(Exception):
    """Standard output is closed: the user quit a pager or closed the terminal, or `why` gives another reason."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


PROPOSED = "with: wavedeck "
"""How a message proposes a command."""
line_start = ""
"""`say` writes it before each line: the code that erases a waiting line (`tui.print.waiting_line`)."""


def say(message: str) -> None:
    """Print one line on standard error; print nothing if standard error is closed.

    A command that the message proposes works as it is printed, also where the shell does not find `wavedeck`.
    """
    proposing = message.replace(PROPOSED, f"with: {program()} ")
    write_error(f"{line_start}wavedeck: {one_line(proposing)}\n")


@functools.cache
def program() -> str:
    """Return the words that start this program in the person's shell: `wavedeck`, or the path that they typed."""
    if shutil.which("wavedeck") or Path(sys.argv[0]).name != "wavedeck":
        return "wavedeck"
    return shlex.quote(sys.argv[0])


def write_error(text: str) -> None:
    """Write text to standard error; nothing if it is closed."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        silence(2)


def silence(descriptor: int) -> None:
    """Redirect a closed stream to `/dev/null`, so that later writes and the interpreter's last flush do not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    r"""Return the text with invisible characters written out (`\x1b`); line ends and tabs stay.

    The output of models and candidates must not control the user's terminal.
    """
    return replace_invisible(text, _written_out)


def _written_out(char: str) -> str:
    return char if char == "\t" else char.encode("unicode_escape").decode("ascii")


def code_of(error: BaseException) -> ExitCode | None:
    """Return the exit code of a known kind of error; `None` for an unexpected error."""
    if isinstance(error, Complaint):
        return error.code
    # Imported here: a command that does not fail never needs these modules.
    from engine.errors import EngineError, UsageProblem
    from harness.wire.errors import BadPython, HarnessError, UnknownBaseline, UnknownDevice, UnknownTarget
    from sessions import errors as sessions
    from suites.errors import SuiteError

    wrong_usage = (
        UsageProblem,
        BadPython,
        UnknownBaseline,
        UnknownDevice,
        UnknownTarget,
        SuiteError,
        sessions.SessionBusy,
        sessions.ForeignSession,
        sessions.NothingToResume,
        sessions.NoSuchSession,
        sessions.AmbiguousSession,
        sessions.NoSuchAttempt,
        sessions.CommandRefused,
        sessions.NotApplicable,
        sessions.BadRecording,
        sessions.RemoteUnusable,
        sessions.BranchDiffers,
    )
    if isinstance(error, wrong_usage):
        return ExitCode.USAGE
    if isinstance(error, EngineError | HarnessError | sessions.SessionsError):
        return ExitCode.FAILED
    return None


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors inside nested groups, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def report(error: BaseException, *, crashes: Path) -> ExitCode:
    """Print one line for each error and return the worst exit code. An unexpected error leaves its traceback in a file."""
    # Imported here: a command that does not fail never needs this module.
    from engine.errors import refusal

    worst = ExitCode.DONE
    for leaf in leaves(error):
        code = code_of(leaf)
        if words := refusal(leaf):
            say(words)
            code = ExitCode.FAILED
        elif code is None:
            text = one_line(f"{type(leaf).__name__}: {leaf}")
            say(f"unexpected {text}; the traceback is in {write_crash(leaf, crashes)}")
            code = ExitCode.FAILED
        else:
            say(str(leaf))
        worst = max(worst, code)
    return worst


def write_crash(error: BaseException, crashes: Path) -> Path:
    """Write the traceback of an error to a new file in `crashes`, or else in the temporary folder; return the file."""
    head = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, Python {platform.python_version()}, {platform.platform()}\n\n"
    text = head + "".join(traceback.format_exception(error))
    # Imported here: a command that does not fail never needs this module.
    from suites.privacy import make_private_folder

    try:
        make_private_folder(crashes)
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
