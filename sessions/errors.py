"""Errors of the memory. Each message names the cause, then the next step."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path


class SessionsError(Exception):
    """Base class of the memory's errors."""


class ExtraMissing(SessionsError):
    """A figure needs a package of an extra that is not installed."""

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(f"{package} is not installed; get it with: pip install 'wavedeck[{extra}]'")


class HomeNotWritable(SessionsError):
    """The home folder cannot be created or written."""

    def __init__(self, path: Path, *, why: str) -> None:
        super().__init__(
            f"the home {path} cannot be written ({why}); set WAVEDECK_HOME to a folder you may write"
        )


class HomeNotPrivate(SessionsError):
    """Another user can write into the home, so files there could act as this user and read their keys."""


class HomeNotReadable(SessionsError):
    """The home folder exists but cannot be read."""

    def __init__(self, path: Path, *, why: str) -> None:
        super().__init__(f"the home {path} cannot be read ({why}); set WAVEDECK_HOME to a folder of yours")


class JournalNotWritable(SessionsError):
    """The disk refused an event; acknowledged events are safe."""

    def __init__(self, path: Path, *, why: str) -> None:
        super().__init__(f"the journal {path} cannot be written ({why}); make room, then resume the session")


class JournalNotReadable(SessionsError):
    """A journal cannot be read: it belongs to another user, or is not a file."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"the journal {path} cannot be read ({error.strerror or error}); check what it is and who owns it"
        )


class StoredJournalDamaged(JournalNotReadable):
    """A compressed journal is damaged."""

    def __init__(self, path: Path) -> None:
        SessionsError.__init__(self, f"the journal {path} is damaged; run: wavedeck doctor --repair")


class JournalDamaged(SessionsError):
    """A line in the middle of a journal cannot be read, so the session must not continue on it."""

    def __init__(self, path: Path, *, line: int, why: str) -> None:
        super().__init__(
            f"{path} line {line} cannot be read ({why}); replay still opens the journal; remove the line to resume the session"
        )


class EventNotKeepable(SessionsError):
    """An event cannot be read back after it is written, for example because of a NaN in a number."""

    def __init__(self, tag: str, *, why: str) -> None:
        super().__init__(
            f"an event {tag} cannot be stored ({why}); this is a bug in Wavedeck, please report it"
        )


class SessionBusy(SessionsError):
    """Another process holds the session's lock."""

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session} is running; reach it with: wavedeck attach {session}")


class SessionExists(SessionsError):
    """A new session's name is taken."""

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session} already exists; go on with: wavedeck resume {session}")


class ForeignSession(SessionsError):
    """Another home made the session, or continued it, and no person here trusts it yet. `acts` says what it would do."""

    def __init__(self, session: str, acts: Sequence[str]) -> None:
        super().__init__(
            f"session {session} came from another home, and going on would {', '.join(acts)}; if you trust its sender: "
            f"wavedeck resume {session} --trust-session"
        )
        self.acts = acts


class NothingToResume(SessionsError):
    """The session is finished."""

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session} is finished; look at it with: wavedeck replay {session}")


class NoSuchSession(SessionsError):
    """No session has this name or prefix."""

    def __init__(self, asked: str, *, nearest: Sequence[str] = (), home_is_empty: bool = False) -> None:
        hint = f"nearest: {', '.join(nearest)}" if nearest else "list them with: wavedeck sessions"
        if home_is_empty:
            hint = "there are none yet; start one with: wavedeck run TASK"
        super().__init__(f"no session {asked!r}; {hint}")
        self.hint = hint


class NoSuchSessionOrStudy(NoSuchSession):
    """Neither a session nor a study has this name or prefix."""

    def __init__(self, name: str, missing: NoSuchSession) -> None:
        super().__init__(name)
        self.args = (f"no session or study {name!r}; {missing.hint}; list studies with: wavedeck study",)


class AmbiguousSession(SessionsError):
    """A prefix fits several sessions."""

    def __init__(self, asked: str, *, fitting: Sequence[str]) -> None:
        shown = ", ".join(fitting[:4]) + (", ..." if len(fitting) > 4 else "")
        super().__init__(f"{asked!r} fits {len(fitting)} names ({shown}); give more of the name")


class NoSuchAttempt(SessionsError):
    """The session has no attempt of this name."""

    def __init__(self, attempt: str, names: Sequence[str]) -> None:
        nearest = difflib.get_close_matches(attempt, names, n=3)
        hint = f"nearest: {', '.join(nearest)}" if nearest else "attempt names look like softmax#2/7"
        super().__init__(f"no attempt {attempt!r} in this session; {hint}")


class CommandRefused(SessionsError):
    """The session cannot follow a command; nothing was recorded."""


class NotApplicable(SessionsError):
    """A kernel cannot be put into a repository; nothing was changed there."""


class RemoteUnusable(SessionsError):
    """Another git repository cannot be reached, or refuses."""

    def __init__(self, address: str, *, why: str) -> None:
        super().__init__(
            f"git cannot use the repository {address!r} ({why}); check its address and your access"
        )


class BranchDiffers(SessionsError):
    """Both sides of a push or a fetch have a branch, with different commits; nothing was changed."""

    def __init__(self, branch: str, *, where: str) -> None:
        super().__init__(
            f"the branch {branch} of {where} has other commits, so nothing was changed; keep one version under another home"
        )


class StoreBroken(SessionsError):
    """The git store cannot be read or written."""


class StoreDamaged(StoreBroken):
    """A file, ref or object of the git store is lost or damaged."""

    def __init__(self, damage: str) -> None:
        self.damage = damage
        super().__init__(f"{damage}; repair the store with: wavedeck doctor --repair")


class BadRecording(SessionsError):
    """A recording's folder has a wrong format, or cannot be created from a session."""
