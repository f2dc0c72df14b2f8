"""Where a screen asks the app to go. Screens know no other screens; the app opens them."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class OpenSession(Message):
    """Open a session: live, or as a replay."""

    session: str


@dataclass
class OpenInstance(Message):
    """Open the Agent screen of an instance, at an attempt or at its newest."""

    key: str
    number: int | None = None


@dataclass
class OpenLatency(Message):
    """Open the Latency screen of an attempt (`softmax#2/7`)."""

    attempt: str


@dataclass
class GoToAttempt(Message):
    """Go to an attempt, in a replay to its verdict; the screen knows what a number alone means."""

    words: str


@dataclass
class OpenReview(Message):
    """Open the Review queue, at an attempt or at the oldest that waits."""

    attempt: str | None = None


class OpenReport(Message):
    """Open the Report of the open session."""


@dataclass
class FindWords(Message):
    """Find words in the reasoning and the replies of all attempts of the open session."""

    words: str


class OpenFleet(Message):
    """Go back to the Fleet screen of the open session."""


class LeaveSession(Message):
    """Close the session and go Home."""


@dataclass
class NewRun(Message):
    """Open the form of a new run, perhaps in a field."""

    field: str = ""
