"""The lines of a candidate that its error names, for `e` and for the marks in the code."""

from __future__ import annotations

import re

from sessions.state.state import AttemptState

FRAME = re.compile(r'^\s*File "(?:[^"]*/)?kernel\.py", line (\d+)')
"""A frame of a trace that is in the candidate."""


def frame_line(text: str) -> int | None:
    """Return the candidate's line of a line of a trace; `None` if it is no frame of the candidate."""
    frame = FRAME.match(text)
    return int(frame[1]) if frame else None


def error_lines(attempt: AttemptState) -> list[int]:
    """Return the lines, 1-based, each once: that of the error first, then those of its trace and of findings."""
    evaluation = attempt.evaluation
    if evaluation is None or evaluation.error is None:
        return []
    error = evaluation.error
    lines = [error.line, *map(frame_line, error.trace.split("\n"))]
    lines += [finding.line for finding in evaluation.findings]
    return list(dict.fromkeys(number for number in lines if number is not None))
