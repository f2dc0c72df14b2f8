"""Why no call of a benchmark's test can be judged."""

from __future__ import annotations


class NotRecorded(Exception):
    """The task has no call that can be judged; the message says why."""


class NoReport(NotRecorded):
    """A process that runs a benchmark's text ended, or gave no report in time."""

    def __init__(self, message: str, *, is_slow: bool = False) -> None:
        super().__init__(message)
        self.is_slow = is_slow
