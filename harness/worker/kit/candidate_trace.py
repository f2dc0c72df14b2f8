"""Explains an exception of a candidate to the author of the kernel, and finds the candidate's line that runs now.

Error reports of all workers come from here: the true cause, only the candidate's own frames, its file shown as `kernel.py`.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

NAME = "kernel.py"
_MESSAGE_CHARACTERS = 2000
_FRAMES = 20


class Explained(NamedTuple):
    """An exception as a kernel author reads it."""

    message: str
    """Type and text, as `TypeError: ...`."""
    trace: str
    line: int | None
    """The innermost line of the candidate's own module."""


def file_of(module: ModuleType) -> str:
    """The file with the candidate's text. `__file__` of a candidate in a package is the file that it replaces."""
    origin = module.__spec__.origin if module.__spec__ is not None else None
    return origin or module.__file__ or ""


def explain(error: BaseException, module: Path) -> Explained:
    """The cause of `error` (Triton's interpreter wraps it in `InterpreterError`), with frames of the file `module` only."""
    chain = [error]
    while type(chain[-1]).__name__ == "InterpreterError" and chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    frames = [
        traceback.FrameSummary(NAME, frame.lineno or 0, frame.name, line=frame.line)
        for link in chain
        for frame in traceback.extract_tb(link.__traceback__)
        if frame.filename == str(module)
    ]
    cause = chain[-1]
    line = frames[-1].lineno if frames else None
    if isinstance(cause, SyntaxError) and cause.filename == str(module):
        line = cause.lineno
    message = "".join(traceback.format_exception_only(type(cause), cause)).strip()
    message = message.replace(str(module), NAME)
    message = message.encode(errors="backslashreplace").decode()  # no message can hold half a surrogate pair
    if len(message) > _MESSAGE_CHARACTERS:
        message = message[:_MESSAGE_CHARACTERS] + " ..."
    lines = traceback.format_list(frames[-_FRAMES:])
    header = ["Traceback (most recent call last):\n"] if lines else []
    return Explained(message, "".join([*header, *lines, message, "\n"]), line)


def calling_line(file: str) -> int | None:
    """The innermost line of `file` on the stack of the caller."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None
