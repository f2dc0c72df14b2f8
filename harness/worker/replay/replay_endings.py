"""How a replay ends without outputs."""

from __future__ import annotations


class Refused(Exception):
    """The record cannot be what honest code does; `kind` and `line` are for the error report."""

    def __init__(self, message: str, kind: str = "not_replayed", line: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.line = kind, line


class Diverged(Exception):
    """Python read other values when the record was made: with these inputs it might have gone another way."""


class ProgramsWait(Exception):
    """Programs wait for programs of their launch that have lower numbers, so that they cannot run from the last to the first."""
