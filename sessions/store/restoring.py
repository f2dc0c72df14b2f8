"""The way back from git: writes the journal of a session that came without one, by `git clone --mirror` or by a fetch."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sessions import recorded_example as example
from sessions.errors import (
    CommandRefused,
    HomeNotWritable,
    JournalNotReadable,
    NoSuchSession,
    SessionBusy,
    StoreDamaged,
)
from sessions.events import DecisionMade, DecisionUndone, Event
from sessions.files import locked
from sessions.home import Home, SessionFiles
from sessions.journal.codec import decode
from sessions.journal.file import JournalFile, compress_journal, compressed_path
from sessions.listing.skimming import starts_of

from .repository import MOST_BYTES
from .store import Store, texts_of

LOCK_WAIT_S = 60.0
"""Another process that writes the same journal takes seconds."""


def session_journal(home: Home, session: str) -> JournalFile:
    """Open the journal of a session; where only git has it, it is written first.

    Raises `NoSuchSession`, `JournalNotReadable` or `StoreBroken`. In a home that cannot be written it lasts until it is closed.
    """
    files = home.files(session)
    try:
        return JournalFile(files.journal)
    except FileNotFoundError:
        if session == example.NAME:
            return JournalFile(example.JOURNAL)
    except OSError as error:
        raise JournalNotReadable(files.journal, error) from error
    if not home.store.exists():
        raise NoSuchSession(session)
    try:
        with Store.of(home) as store:
            restore(store, files)
        return JournalFile(files.journal)
    except FileNotFoundError:
        raise NoSuchSession(session) from None  # another process deleted it
    except (HomeNotWritable, OSError):
        with Store.read_only(home.store) as store, tempfile.TemporaryDirectory() as folder:
            return _written(store, session, Path(folder) / files.journal.name)


def restore(store: Store, files: SessionFiles) -> None:
    """Write the compressed journal of a session and the compiler's texts from git, unless the session has a journal.

    Raises `NoSuchSession`, `SessionBusy`, `StoreBroken` or `OSError`.
    """
    if files.session == example.NAME:
        raise CommandRefused(example.READ_ONLY)
    store.segments(files.session)  # raises before there is a folder
    files.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(files.lock, wait_s=LOCK_WAIT_S) as got:
        if not got:
            raise SessionBusy(files.session)
        if files.has_journal:
            return
        lines = store.session_lines(files.session)
        files.note_fetched(last_decision(lines), is_foreign=not store.is_own(files.session))
        _keep_texts(store, files)
        # Not at its name: without its last lines, it would be a journal too.
        unfinished = files.folder / ".restored.jsonl"
        try:
            _written(store, files.session, unfinished).close()
            compress_journal(unfinished)
            compressed_path(unfinished).rename(files.stored_journal)
        finally:
            unfinished.unlink(missing_ok=True)


def _keep_texts(store: Store, files: SessionFiles) -> None:
    """Copy the compiler's texts of a session from git: at most `MOST_BYTES`, because a stranger may have made them."""
    left = MOST_BYTES
    for digest, sha in texts_of(store.session_tree(files.session)).items():
        with suppress(StoreDamaged):
            left -= store.repository.size_of(sha)
            if left < 0:
                return
            files.keep_texts({digest: store.repository.read_file(sha)})


def last_decision(lines: Iterable[bytes]) -> int:
    """Returns the number of the last decision on the lines of a journal; 0 without one."""
    starts = starts_of((DecisionMade, DecisionUndone))
    events = (decode(line) for line in lines if line.startswith(starts))
    return max((event.seq for event in events if isinstance(event, Event)), default=0)


def _written(store: Store, session: str, path: Path) -> JournalFile:
    with path.open("wb") as file:
        file.writelines(store.session_lines(session))
    return JournalFile(path)


def has_whole_journal(store: Store, files: SessionFiles) -> bool:
    """True if git has all of a session's journal. Raises `StoredJournalDamaged`."""
    with JournalFile(files.journal) as file:
        journal = file.read(0, file.size)
    try:
        return compare(store, files.session, journal).stored == len(journal)
    except (NoSuchSession, StoreDamaged):
        return False


class Agreement(NamedTuple):
    """How much of a journal git has."""

    stored: int
    """Bytes of the journal that git has."""
    beyond: bytes
    """Bytes that git has beyond the journal: a disk lost synced data."""


def compare(store: Store, session: str, journal: bytes) -> Agreement:
    """Compare a journal with its copy in git, by the ids of the pieces.

    Raises `NoSuchSession` if git has nothing of it, and `StoreDamaged` if the two differ or git lost a part.
    """
    size = 0
    segments = store.segments(session)
    for number, (sha, length) in enumerate(segments):
        piece = journal[size : size + length]
        content = b"blob %d\0" % len(piece) + piece
        if hashlib.sha1(content, usedforsecurity=False).hexdigest() != sha:
            rest = b"".join(store.repository.read_file(later) for later, _ in segments[number:])
            if rest.startswith(journal[size:]) and rest.endswith(b"\n"):
                return Agreement(len(journal), rest[len(journal) - size :])
            raise StoreDamaged(f"the store's journal of {session} differs from the session's own")
        size += length
    return Agreement(size, b"")
