"""Exceptions with which a replay ends without outputs."""

from __future__ import annotations


class Refused(Exception):
    """Honest code cannot produce this record. `kind` and `line` go into the error report."""

    def __init__(self, message: str, kind: str = "not_replayed", line: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.line = kind, line


class Diverged(Exception):
    """Python read different values in the recorded call, so that with these inputs it might have taken a different path."""


class ProgramsWait(Exception):
    """Programs of a launch wait for programs with lower numbers, so that they cannot run from the last to the first."""
