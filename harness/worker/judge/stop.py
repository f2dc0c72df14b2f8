"""The exception that ends a trial with a verdict."""

from __future__ import annotations

from harness.wire.evaluation import ErrorReport, Verdict


class Stop(Exception):
    """Ends the trial with this verdict."""

    def __init__(self, verdict: Verdict, error: ErrorReport) -> None:
        super().__init__(error.message)
        self.verdict, self.error = verdict, error
