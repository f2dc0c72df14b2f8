"""Git as a projection of journals: which pieces of a journal its branch `_journal` gets, and all branches written anew.

The events alone decide where a journal is cut and what goes with each piece, so the same journal gives the same commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from sessions import events as ev
from sessions.home import SessionFiles
from sessions.journal.codec import decode, tag_of
from sessions.journal.file import JournalFile
from sessions.journal.reader import JournalReader
from sessions.state.folding import apply
from sessions.state.state import SessionState

from .attempt_commits import (
    Reasoning,
    attempt_files,
    attempt_message,
    parents_of,
    with_trailers,
)
from .decidable import find_attempt
from .importing import ImportStream
from .repository import Repository
from .store import attempt_branch, journal_branch, segment_name, text_path

VERSION = 2
"""Raise it when the same journal gives other commits: pushed branches then have another history than a rebuilt one."""
PIECE_BYTES = 256 << 10
PIECE_SHARE = 1 / 16
"""While an engine works, a piece has at least so many bytes, and in a long journal this share of it: making a piece reads the
whole state, so that pieces of a fixed size would cost ever more of the time."""


class Piece(NamedTuple):
    """A commit of the branch `_journal`: a piece of the journal, and the files that are new with it."""

    start: int
    end: int
    """Offsets in the journal."""
    first_seq: int
    files: Mapping[str, bytes]
    texts: tuple[str, ...]
    """Names of the compiler's texts that its evaluations have."""
    wall: float
    """Seconds since the epoch, UTC."""

    def message(self, session: str) -> str:
        """Returns the message of its commit."""
        return with_trailers(f"journal of {session}: {self.first_seq}", {"Projection": str(VERSION)})


class Projector:
    """Follows the events of a session and says which pieces git gets."""

    def __init__(self, state: SessionState, *, stored: int = 0) -> None:
        """Follow the events of a state from its first one on; git has the first `stored` bytes of the journal already."""
        self._state = state
        self._stored = stored
        self._start = 0
        self._first_seq = 0
        self._texts: dict[str, None] = {}

    def see(self, event: ev.Event, end: int) -> Piece | None:
        """Return the piece that ends with this event, if one does; the state has the event, and its line ends at `end`."""
        self._first_seq = self._first_seq or event.seq
        if isinstance(event, ev.JudgedEvent):
            for kernels in event.evaluation.resources.values():
                self._texts.update((digest, None) for kernel in kernels for digest in kernel.texts.values())
        if isinstance(event, ev.ProfileTaken) and event.profile is not None:
            self._texts.update((digest, None) for digest in event.profile.raw.values())
        is_whole = self._ends_piece(event, end)
        piece = self._piece(event, end) if is_whole and end > self._stored else None
        if is_whole or end == self._stored:
            self._start, self._first_seq = end, 0
            self._texts.clear()
        return piece

    def _ends_piece(self, event: ev.Event, end: int) -> bool:
        if self._state.engine_mono is None:
            return True  # no engine works, so nothing may follow for long
        least = max(PIECE_BYTES, int(end * PIECE_SHARE))
        return isinstance(event, ev.AttemptCommitted) and end - self._start >= least

    def _piece(self, event: ev.Event, end: int) -> Piece:
        started = self._state.started
        files = {"session.json": msgspec.json.encode(started) + b"\n"} if started is not None else {}
        return Piece(self._start, end, self._first_seq, files, tuple(self._texts), event.wall)


def read_texts(files: SessionFiles, digests: Iterable[str]) -> dict[str, bytes]:
    """Returns the compiler's texts of a session by their path on its branch; those without a file are left out."""
    return {text_path(digest): text for digest in digests if (text := files.text(digest)) is not None}


class Rebuilt(NamedTuple):
    """The branches of a session, written anew; the store has their objects, and its refs are as before."""

    branches: Mapping[str, str]
    """Id of the newest commit of each branch."""
    commits: Mapping[str, str]
    """Id of each attempt's commit. An older version may have noted a different id in the journal."""
    end: int
    """Bytes of the journal that the branch `_journal` has."""


def rebuild(repository: Repository, files: SessionFiles) -> Rebuilt:
    """Write all commits of a session again from its journal, with one `git fast-import`.

    It writes a pack of its own beside the store, so that damaged objects of the store are not taken for the same ones.
    """
    with JournalFile(files.journal) as journal, repository.importing() as stream:
        writer = _Commits(stream, files.session)
        lines = JournalReader(journal)
        state, reasoning = SessionState(journal=lines), Reasoning()
        projector = Projector(state)
        final, read_at = _commits_in(journal)
        for event in lines.read_on():
            if not isinstance(event, ev.Event):
                continue
            if (
                isinstance(event, ev.AttemptCommitted)
                and not event.read_seq
                and final.get(event.attempt) == event
            ):
                # An older version did not note what the commit has: nearly always all before this event.
                writer.write_attempt(event, state, reasoning)
            apply(state, event)
            reasoning.see(event)
            for committed in read_at.get(event.seq, ()):
                writer.write_attempt(committed, state, reasoning)
            if piece := projector.see(event, lines.size):
                writer.write_piece(piece, journal, files)
    return writer.ids(stream.ids)


def _commits_in(
    journal: JournalFile,
) -> tuple[dict[str, ev.AttemptCommitted], dict[int, list[ev.AttemptCommitted]]]:
    """The last commit event of each attempt, and those events by the number of the event up to which the commit was made."""
    start = b'{"type":"%s"' % tag_of(ev.AttemptCommitted).encode()
    events = (decode(line) for line in journal.lines() if line.startswith(start))
    final = {event.attempt: event for event in events if isinstance(event, ev.AttemptCommitted)}
    read_at: dict[int, list[ev.AttemptCommitted]] = {}
    for event in final.values():
        read_at.setdefault(event.read_seq, []).append(event)
    return final, read_at


class _Commits:
    """Writes the commits of one session to `git fast-import`."""

    def __init__(self, stream: ImportStream, session: str) -> None:
        self._stream = stream
        self._session = session
        self._marks: dict[str, int] = {}
        """Mark of the commit of each attempt."""
        self._by_id: dict[str, int] = {}
        """The same by the id that the journal has."""
        self._tips: dict[str, int] = {}
        """Mark of the newest commit of each branch."""
        self._end = 0

    def write_attempt(self, event: ev.AttemptCommitted, state: SessionState, reasoning: Reasoning) -> None:
        """Write the commit of an attempt, with what the state has of it."""
        attempt, instance = find_attempt(state, event.attempt)
        files = attempt_files(instance, attempt, reasoning.of(attempt))
        parents = [self._by_id[sha] for sha in parents_of(state, attempt, instance) if sha in self._by_id]
        branch = attempt_branch(self._session, instance.key)
        mark = self._stream.commit(
            branch, files, parents, attempt_message(attempt), attempt.judged_wall, afresh=True
        )
        self._marks[event.attempt] = self._by_id[event.commit] = self._tips[branch] = mark

    def write_piece(self, piece: Piece, journal: JournalFile, files: SessionFiles) -> None:
        """Write the commit of a piece of the journal."""
        branch, self._end = journal_branch(self._session), piece.end
        data = {segment_name(piece.first_seq): journal.read(piece.start, piece.end - piece.start)}
        self._tips[branch] = self._stream.commit(
            branch,
            {**data, **piece.files, **read_texts(files, piece.texts)},
            [self._tips[branch]] if branch in self._tips else [],
            piece.message(self._session),
            piece.wall,
            afresh=False,
        )

    def ids(self, ids: Mapping[int, str]) -> Rebuilt:
        """Return what was written, by the ids of the marks."""
        return Rebuilt(
            {branch: ids[mark] for branch, mark in self._tips.items()},
            {attempt: ids[mark] for attempt, mark in self._marks.items()},
            self._end,
        )
