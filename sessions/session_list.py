"""The list of sessions for a reader that asks again and again: each reading reads only what is new."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from .catalog import stored_info
from .errors import JournalNotReadable
from .home import JOURNAL, Home, LiveFiles
from .state.info import SessionInfo, Standing, damaged_info, live_info_of, skim
from .state.state import SessionState
from .store.store import Store, damaged_branch, journal_branch


@dataclass(slots=True)
class _Tail:
    """A live journal, read up to an offset."""

    inode: int
    offset: int = 0
    state: SessionState = field(default_factory=SessionState)


class SessionList:
    """All sessions of a home. Any thread may read; readings wait for each other."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._tails: dict[str, _Tail] = {}
        self._stored: dict[str, SessionInfo] = {}
        """Lines of stored sessions, by commit of the journal's branch."""
        self._reading = threading.Lock()

    def mark(self) -> tuple[object, ...]:
        """Returns a value that changes when a session starts, writes or ends, or a branch is added; reads no file."""
        live = [(files.session, _size(files), files.running) for files in self._home.live_sessions()]
        store = self._home.store
        times = []
        for path in (store / "refs" / "heads", store / "packed-refs"):
            try:
                times.append(path.stat().st_mtime_ns)
            except OSError:
                times.append(0)
        return (*live, *times)

    def read(self) -> list[SessionInfo]:
        """Returns every session, newest first, as `catalog.list_sessions`."""
        with self._reading:
            # Live folders first: a session that moves to the store during this call is then found there.
            sessions = {}
            for files in self._home.live_sessions():
                info = self._read_live(files)
                if info is not None:
                    sessions[info.name] = info
            self._tails = {name: tail for name, tail in self._tails.items() if name in sessions}
            for name, info in self._read_store().items():
                sessions.setdefault(name, info)
            return sorted(sessions.values(), key=lambda info: info.name, reverse=True)

    def _read_live(self, files: LiveFiles) -> SessionInfo | None:
        try:
            with files.journal.open("rb") as journal:
                status = os.fstat(journal.fileno())
                tail = self._tail(files.session, status.st_size, status.st_ino)
                journal.seek(tail.offset)
                skim(tail.state, _whole_lines(journal, tail))
        except FileNotFoundError:
            return None
        except OSError as error:
            return damaged_info(files.session, str(JournalNotReadable(files.journal, error)))
        return live_info_of(files, tail.state)

    def _tail(self, session: str, size: int, inode: int) -> _Tail:
        tail = self._tails.get(session)
        if tail is None or tail.inode != inode or size < tail.offset:
            tail = self._tails[session] = _Tail(inode)
        return tail

    def _read_store(self) -> dict[str, SessionInfo]:
        if not self._home.store.exists():
            return {}
        suffix = f"/{JOURNAL}"
        sessions = {}
        stored = {}
        with Store.read_only(self._home.store) as store:
            for branch, commit in store.heads().items():
                if not branch.endswith(suffix):
                    continue
                name = branch.removesuffix(suffix)
                info = self._stored.get(commit)
                if info is None:
                    info = stored_info(store, name, commit)
                sessions[name] = info
                if info.state is not Standing.DAMAGED:
                    # A repair writes lost objects again and changes no commit.
                    stored[commit] = info
            for name in store.damaged_sessions() - sessions.keys():
                sessions[name] = damaged_info(name, str(damaged_branch(journal_branch(name))))
        self._stored = stored
        return sessions


def _whole_lines(journal: BinaryIO, tail: _Tail) -> Iterator[bytes]:
    """Yield the lines that are complete and move the tail behind each of them; a journal may be too long for memory."""
    for line in journal:
        if not line.endswith(b"\n"):
            return
        tail.offset += len(line)
        yield line[:-1]


def _size(files: LiveFiles) -> int:
    try:
        return files.journal.stat().st_size
    except OSError:
        return 0
