"""Copies the journal to git: complete lines in segments, each committed once."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sessions.errors import JournalDamaged, NoSuchSession, StoreDamaged
from sessions.home import LiveFiles
from sessions.journal.codec import BadLine, decode
from sessions.listing.description import SessionSummary
from sessions.settings import SessionDescription

from .store import Store, text_path


class Segments:
    """Tracks which part of a journal is in git, and adds the rest."""

    def __init__(self, store: Store, live: LiveFiles) -> None:
        self._store = store
        self._live = live
        self._committed_bytes = 0
        self._afresh = False
        self._texts: set[str] = set()
        """Names of the compiler's texts that git has."""

    def align(self, journal: bytes) -> bytes:
        """Find out how much of this journal git has; returns the bytes that git has beyond it.

        Git has more only if a disk lost synced data. If the two differ, or git's branch is damaged, the journal counts,
        and the next flush replaces the segments.
        """
        try:
            stored = self._store.session_bytes(self._live.session)
        except NoSuchSession:
            stored = b""
        except StoreDamaged:
            self.start_afresh()
            return b""
        if stored.startswith(journal):
            self._committed_bytes = len(stored)
            return stored[len(journal) :]
        self._afresh = not journal.startswith(stored)
        self._committed_bytes = 0 if self._afresh else len(stored)
        return b""

    def start_afresh(self) -> None:
        """Let the next flush write the whole journal again, without the old history if that is damaged."""
        self._committed_bytes, self._afresh = 0, True
        self._texts.clear()

    def is_due(self, size: int, *, limit_bytes: int) -> bool:
        """True if git lacks `limit_bytes` of a journal of this size, or has nothing of it."""
        return self._committed_bytes == 0 or size - self._committed_bytes >= limit_bytes

    def flush(
        self,
        size: int,
        *,
        summary: SessionSummary,
        started: SessionDescription | None,
        files: Mapping[str, bytes],
    ) -> None:
        """Commit the missing bytes of the journal up to `size`.

        The commit also has `session.json`, `summary.json`, `files`, torn lines, and new texts of the compiler.
        """
        files = {"summary.json": msgspec.json.encode(summary) + b"\n", **files}
        if started is not None:
            files["session.json"] = msgspec.json.encode(started) + b"\n"
        files |= {path.name: path.read_bytes() for path in sorted(self._live.folder.glob("journal.torn-*"))}
        texts = [path for path in self._live.texts.glob("[0-9a-f]*") if path.name not in self._texts]
        files |= {text_path(path.name): path.read_bytes() for path in texts}
        wall = summary.last_wall or 0.0
        try:
            self._extend(size, files, wall)
        except StoreDamaged:
            self.start_afresh()
            self._extend(size, files, wall)
        self._committed_bytes, self._afresh = size, False
        self._texts.update(path.name for path in texts)

    def _extend(self, size: int, files: Mapping[str, bytes], wall: float) -> None:
        data = self._read(self._committed_bytes, size)
        self._store.extend_journal(
            self._live.session,
            segments={self._first_seq(data): data} if data else {},
            files=files,
            wall=wall,
            afresh=self._afresh,
        )

    def _first_seq(self, data: bytes) -> int:
        first = decode(data[: data.index(b"\n")])
        if isinstance(first, BadLine):
            raise JournalDamaged(self._live.journal, line=1, why=first.why)
        return first.seq

    def _read(self, start: int, end: int) -> bytes:
        with self._live.journal.open("rb") as file:
            file.seek(start)
            return file.read(end - start)
