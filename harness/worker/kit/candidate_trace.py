"""A candidate's exception in the candidate's own words: its lines, its true cause, nothing of ours."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import NamedTuple

NAME = "kernel.py"
_MESSAGE_CHARACTERS = 2000
_FRAMES = 20


class Explained(NamedTuple):
    """What an exception says to a kernel author."""

    message: str
    """`TypeError: ...`."""
    trace: str
    line: int | None
    """The innermost line of the candidate's own module."""


def explain(error: BaseException, module: Path) -> Explained:
    """The true cause (Triton's interpreter wraps it) with the frames of `module` alone, which is shown as `kernel.py`."""
    chain = [error]
    while _wraps(chain[-1]):
        cause = chain[-1].__cause__
        assert cause is not None
        chain.append(cause)
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
    said = "".join(traceback.format_exception_only(type(cause), cause)).strip()
    said = said.replace(str(module), NAME)
    said = said.encode(errors="backslashreplace").decode()  # half a surrogate pair goes into no message
    if len(said) > _MESSAGE_CHARACTERS:
        said = said[:_MESSAGE_CHARACTERS] + " ..."
    shown = traceback.format_list(frames[-_FRAMES:])
    text = "".join(["Traceback (most recent call last):\n", *shown, said, "\n"]) if shown else said + "\n"
    return Explained(said, text, line)


def calling_line(file: str) -> int | None:
    """The innermost line of `file` that runs now."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _wraps(error: BaseException) -> bool:
    return type(error).__name__ == "InterpreterError" and error.__cause__ is not None
