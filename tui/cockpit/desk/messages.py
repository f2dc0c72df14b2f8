"""Where a screen asks the app to go. Screens know no other screens; the app opens them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.message import Message


class OpenSession(Message):
    """Open a session: live, or as a replay at its end."""

    def __init__(self, session: str) -> None:
        super().__init__()
        self.session = session


class OpenInstance(Message):
    """Open the Agent screen of an instance, at an attempt or at its newest."""

    def __init__(self, key: str, number: int | None = None) -> None:
        super().__init__()
        self.key = key
        self.number = number


class OpenLatency(Message):
    """Open the Latency screen of an attempt (`softmax#2/7`)."""

    def __init__(self, attempt: str) -> None:
        super().__init__()
        self.attempt = attempt


class OpenReview(Message):
    """Open the Review queue, at an attempt or at the oldest that waits."""

    def __init__(self, attempt: str | None = None) -> None:
        super().__init__()
        self.attempt = attempt


class OpenReport(Message):
    """Open the Report of the open session, or of these sessions merged."""

    def __init__(self, sessions: Sequence[str] = ()) -> None:
        super().__init__()
        self.sessions = tuple(sessions)


class OpenFleet(Message):
    """Go back to the Fleet screen of the open session."""


class LeaveSession(Message):
    """Close the session and go Home."""


class NewRun(Message):
    """Open the form of a new run."""
