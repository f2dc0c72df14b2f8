"""What can go wrong in the memory. Every message names the thing, then the next step.

SessionsError
├── HomeNotWritable      the home folder cannot be made or written
├── HomeNotReadable      the home folder is somebody else's and shut
├── JournalNotWritable   the disk refused an event
├── JournalDamaged       a line in the middle of a journal cannot be read, so it must not be built on
├── EventNotKeepable     an event's own data would not survive being written and read
├── SessionBusy          another process holds the session's lock
├── SessionExists        a new session's name is taken
├── NothingToResume      the session is finished
├── NoSuchSession        no session of this name or prefix
├── AmbiguousSession     a prefix fits several sessions
├── NoSuchAttempt        the session has no attempt of this name
├── NotDecidable         this attempt cannot be accepted, rejected or undone
├── StoreBroken          the git store says something that cannot be, or refuses to be written
└── BadRecording         a recording's folder is not what the format says, or cannot be made
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class SessionsError(Exception):
    """Root of the memory's errors."""


class HomeNotWritable(SessionsError):
    """The home folder cannot be made or written."""

    def __init__(self, path: Path, *, why: str) -> None:
        super().__init__(
            f"the home {path} cannot be written ({why}); set WAVEDECK_HOME to a folder you may write"
        )
        self.path, self.why = path, why


class HomeNotReadable(SessionsError):
    """The home folder is there and cannot be looked into."""

    def __init__(self, path: Path, *, why: str) -> None:
        super().__init__(f"the home {path} cannot be read ({why}); set WAVEDECK_HOME to a folder of yours")
        self.path, self.why = path, why


class JournalNotWritable(SessionsError):
    """The disk refused an event; what was acknowledged before stands."""

    def __init__(self, path: Path, *, why: str) -> None:
        super().__init__(f"the journal {path} cannot be written ({why}); make room, then resume the session")
        self.path, self.why = path, why


class JournalDamaged(SessionsError):
    """A line in the middle of a journal cannot be read: going on would build on unknown ground."""

    def __init__(self, path: Path, *, line: int, why: str) -> None:
        super().__init__(
            f"{path} line {line} cannot be read ({why}); replay still opens it, and with that line taken out it resumes"
        )
        self.path, self.line, self.why = path, line, why


class EventNotKeepable(SessionsError):
    """An event's own data would not survive being written and read, as a NaN where a number must stand."""

    def __init__(self, tag: str, *, why: str) -> None:
        super().__init__(f"an event {tag} cannot be kept ({why}); this is a fault of ours, please report it")
        self.tag, self.why = tag, why


class SessionBusy(SessionsError):
    """Another process holds the session's lock."""

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session} is running; reach it with: wavedeck attach {session}")
        self.session = session


class SessionExists(SessionsError):
    """A new session's name is taken."""

    def __init__(self, session: str) -> None:
        super().__init__(f"there is a session {session} already; go on with it by: wavedeck resume {session}")
        self.session = session


class NothingToResume(SessionsError):
    """The session is finished."""

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session} is finished; look at it with: wavedeck replay {session}")
        self.session = session


class NoSuchSession(SessionsError):
    """No session of this name or prefix."""

    def __init__(self, asked: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"nearest: {', '.join(nearest)}" if nearest else "list them with: wavedeck sessions"
        super().__init__(f"no session {asked!r}; {hint}")
        self.asked, self.nearest = asked, tuple(nearest)


class AmbiguousSession(SessionsError):
    """A prefix fits several sessions."""

    def __init__(self, asked: str, *, fitting: Sequence[str]) -> None:
        shown = ", ".join(fitting[:4]) + (", ..." if len(fitting) > 4 else "")
        super().__init__(f"{asked!r} fits {len(fitting)} sessions ({shown}); give more of the name")
        self.asked, self.fitting = asked, tuple(fitting)


class NoSuchAttempt(SessionsError):
    """The session has no attempt of this name."""

    def __init__(self, attempt: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"nearest: {', '.join(nearest)}" if nearest else "attempts are named as softmax#2/7"
        super().__init__(f"no attempt {attempt!r} in this session; {hint}")
        self.attempt, self.nearest = attempt, tuple(nearest)


class NotDecidable(SessionsError):
    """What was asked for cannot be decided: the attempt is not judged, or nothing stands to be undone."""


class StoreBroken(SessionsError):
    """The git store says something that cannot be, or refuses to be written."""


class BadRecording(SessionsError):
    """A recording's folder is not what the format says, or cannot be made from a session."""
