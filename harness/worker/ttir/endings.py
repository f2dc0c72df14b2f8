"""How the execution of a kernel's IR ends where it does not come to its end."""

from __future__ import annotations


class Unread(Exception):
    """An operation that is not known here; says nothing of the kernel."""


class Wrong(Exception):
    """What the kernel does cannot be done; `line` is in the candidate's file."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line
