"""Records the events of a session: first in the journal, then in the state, then in git.

The journal is the truth. Git can always be rebuilt from it (`sessions.store.projection`), so a failure of git loses no
event. Call all methods from one thread, the event loop's; blocking work runs in another thread, one piece at a time.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar, cast

from sessions.errors import (
    CommandRefused,
    HomeNotWritable,
    SessionBusy,
    SessionExists,
    StoreBroken,
    StoreDamaged,
)
from sessions.events import (
    AnyEvent,
    AttemptCommitted,
    Command,
    DecisionMade,
    DecisionUndone,
    Event,
    Notice,
    SessionStarted,
    checked,
)
from sessions.files import FileLock
from sessions.home import Home, SessionFiles
from sessions.journal.file import JournalFile, compress_journal
from sessions.journal.journal import EventClock, JournalWriter, open_journal
from sessions.journal.reader import JournalReader
from sessions.listing.info import ListedSession
from sessions.listing.kept_summary import LONG_BYTES, keep_summary, summary_of
from sessions.state.folding import apply
from sessions.state.state import AttemptState, InstanceState, SessionState

from .attempt_commits import (
    Reasoning,
    attempt_files,
    attempt_message,
    committed,
    is_built_on,
    parents_of,
)
from .decidable import accepted_kernel, find_attempt
from .projection import Piece, Projector, Rebuilt, read_texts, rebuild
from .restoring import has_whole_journal
from .store import NewCommit, Store, attempt_branch, segment_name

E = TypeVar("E", bound=Event)
C = TypeVar("C", bound=Command)

LOCK_WAIT_S = 1.0
"""For the session's lock: a reader that checks the lock holds it for microseconds."""
REPAIR = "wavedeck doctor --repair"
SUMMARY_SHARE = 1 / 100
"""Share of the time that goes into summaries for lists: in a long session one takes 50 ms."""
MOST_COMMITS = 64
"""Commits that are written together."""

R = TypeVar("R")


class Recorder:
    """A session that is being recorded; holds its lock until `close`.

    Created by `begin` or `sessions.store.reconcile.resume`.
    """

    def __init__(
        self,
        home: Home,
        files: SessionFiles,
        *,
        lock: FileLock,
        writer: JournalWriter,
        store: Store,
        stored: int = 0,
    ) -> None:
        """Go on with a journal, of which git has the first `stored` bytes."""
        self.home = home
        self.files = files
        self.store = store
        self._lines = JournalReader(JournalFile(files.journal))
        self.state = SessionState(journal=self._lines)
        """The fold of all events so far; only the recorder changes it."""
        self.masks = writer.masks
        """Every event is masked with them before anything acts on it."""
        self._lock = lock
        self._writer = writer
        self._reasoning = Reasoning()
        self._projector = Projector(self.state, stored=stored)
        self._pieces: deque[Piece] = deque()
        """Pieces of the journal that git lacks."""
        self._git = asyncio.Lock()
        self._waiting: dict[str, None] = {}
        """Attempts that wait for their commit, in the order of their requests."""
        self._deciding = asyncio.Lock()
        self._unsynced: dict[str, DecisionMade | DecisionUndone] = {}
        """Latest decision about each attempt that `accepted` may lack, in the order of the decisions."""
        self._blocks = False
        """True inside `now`."""
        self._working = threading.Lock()
        self._syncing = threading.Lock()
        self._synced_seq = 0
        self._summarised_seq = 0
        self._summary_due = 0.0
        """When the next summary for lists may be made, by `time.monotonic`."""
        for event in self._lines.read_on():
            if isinstance(event, Event):
                self._take(event)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @classmethod
    def begin(cls, home: Home, started: SessionStarted, *, clock: EventClock | None = None) -> Recorder:
        """Start recording a new session; its first event is on disk when this returns.

        Raises `HomeNotWritable` or `StoreBroken`, or `SessionBusy` or `SessionExists` if the session exists.
        """
        home.ensure()
        files = home.files(started.session)
        try:
            with ExitStack() as undo:
                lock = FileLock(files.lock)
                undo.callback(lock.release)
                files.folder.mkdir(mode=0o700, exist_ok=True)
                if not lock.acquire(wait_s=LOCK_WAIT_S):
                    raise SessionBusy(started.session)
                if files.has_journal:
                    raise SessionExists(started.session)
                store = Store.of(home)
                undo.callback(store.close)
                writer = open_journal(files.journal, clock=clock).writer
                recorder = cls(home, files, lock=lock, writer=writer, store=store)
                recorder.record(started)
                undo.pop_all()
        except OSError as error:
            raise HomeNotWritable(home.root, why=error.strerror or str(error)) from error
        return recorder

    @property
    def session(self) -> str:
        """The session's name."""
        return self.files.session

    # Events

    def record(self, event: E) -> E:
        """Record an event and return it with number and times; a `DurableEvent` is on disk when this returns."""
        return self._note(self._writer.append(event))

    async def record_durable(self, event: E) -> E:
        """Like `record`, but waits for the disk in another thread; act on the event only after this returns."""
        written = self._note(self._writer.write(event))
        await self._in_thread(partial(self._sync, written.seq))
        return written

    def _sync(self, seq: int) -> None:
        """Sync everything up to `seq`; callers that arrive during a sync share the next one."""
        with self._syncing:
            if self._synced_seq < seq:
                reached = self._writer.last_seq
                self._writer.sync()
                self._synced_seq = reached

    def _note(self, written: E) -> E:
        """Take in an event that was just written."""
        self._lines.note(written.seq, self._writer.size - self._lines.size)
        self._take(written)
        return written

    def _take(self, event: Event) -> None:
        apply(self.state, cast("AnyEvent", event))
        self._reasoning.see(event)
        if piece := self._projector.see(event, self._lines.size):
            self._pieces.append(piece)
        if isinstance(event, DecisionMade | DecisionUndone):
            self._unsynced.pop(event.attempt, None)
            self._unsynced[event.attempt] = event

    def now(self, work: Coroutine[Any, Any, R]) -> R:
        """Run one of the methods to its end for a caller without an event loop; no other method may run at the same time."""
        self._blocks = True
        try:
            work.send(None)
        except StopIteration as end:
            return cast("R", end.value)
        finally:
            self._blocks = False
        raise RuntimeError("another task holds the recorder")

    async def _run(self, work: Callable[[], R]) -> R:
        def alone() -> R:
            # The asyncio lock is not enough: a cancelled caller releases it while its thread still works.
            with self._working:
                return work()

        return await self._in_thread(alone)

    async def _in_thread(self, work: Callable[[], R]) -> R:
        return work() if self._blocks else await asyncio.to_thread(work)

    # Attempts

    async def commit_attempt(self, attempt: str) -> str:
        """Commit a judged attempt and return the commit id; call it when the attempt is complete.

        Calls that finish later are in the journal, but not in the commit. A second call is harmless.
        """
        if self._find(attempt)[0].verdict is None:
            raise CommandRefused(f"{attempt} is not judged, so there is nothing to commit")
        self._waiting[attempt] = None
        try:
            async with self._git:
                if attempt in self._waiting:
                    await self._commit_waiting(attempt)
                await self._write_pieces()
        finally:
            self._waiting.pop(attempt, None)
        return self._find(attempt)[0].commit or ""

    async def _commit_waiting(self, first: str) -> None:
        """Commit an attempt, and with it others that wait: each wait for the disk and each turn of a busy loop costs time."""
        new: dict[str, NewCommit] = {}
        branches: set[str] = set()
        for attempt in [first, *self._waiting]:
            state, instance = self._find(attempt)
            branch = attempt_branch(self.session, instance.key)
            # Its parents must have their commits.
            is_next = state.base not in self._waiting and branch not in branches
            if attempt == first or (is_next and len(new) < MOST_COMMITS):
                branches.add(branch)
                if state.commit is None or not is_built_on(self.state, state, instance):
                    new[attempt] = self._new_commit(state, instance, branch)
        read_seq = self.state.last_seq
        commits = await self._run(lambda: self.store.commit_all(list(new.values())))
        for attempt, commit in zip(new, commits, strict=True):
            self._note_commit(attempt, commit, read_seq=read_seq)
            self._waiting.pop(attempt, None)
            for final in committed(self._find(attempt)[1])[:-1]:
                self._reasoning.forget(final)

    def _new_commit(self, attempt: AttemptState, instance: InstanceState, branch: str) -> NewCommit:
        files = attempt_files(instance, attempt, self._reasoning.of(attempt))
        parents = parents_of(self.state, attempt, instance)
        return NewCommit(branch, files, parents, attempt_message(attempt), attempt.judged_wall)

    def _note_commit(self, attempt: str, commit: str, *, read_seq: int) -> None:
        state, instance = self._find(attempt)
        if state.commit != commit:
            branch = attempt_branch(self.session, instance.key)
            self.record(AttemptCommitted(attempt=attempt, commit=commit, branch=branch, read_seq=read_seq))

    def _find(self, attempt: str) -> tuple[AttemptState, InstanceState]:
        return find_attempt(self.state, attempt)

    # Decisions

    async def follow(self, command: C) -> C:
        """Record a command durably, then update the branch `accepted`. Raises `CommandRefused`."""
        written = await self.record_durable(checked(command, self.state))
        await self.sync_accepted()
        return written

    async def replay_decisions(self) -> None:
        """Bring the journal's decisions to the branch `accepted`, which lacks them if a process was killed.

        Decisions that came by a fetch stay out: each home decides for itself. A kernel that was accepted later stays.
        """
        if self._unsynced:
            last = self.files.last_fetched_decision
            self._unsynced = {name: made for name, made in self._unsynced.items() if made.seq > last}
        await self.sync_accepted(keeps_later=True)

    async def sync_accepted(self, *, keeps_later: bool = False) -> None:
        """Bring all decisions to the branch `accepted`, in their order: the kernel that was accepted last counts.

        With `keeps_later`, that is so across sessions too; without it, a decision counts as made now.
        """
        async with self._deciding:
            while self._unsynced:
                decision = next(iter(self._unsynced.values()))
                if self._find(decision.attempt)[0].commit is None:
                    await self.commit_attempt(decision.attempt)
                async with self._git:
                    # A newer decision about the attempt waits for its turn.
                    if self._unsynced[decision.attempt] is decision:
                        await self._run(self._accepted_work(decision.attempt, keeps_later=keeps_later))
                        if self._unsynced.get(decision.attempt) is decision:
                            del self._unsynced[decision.attempt]

    def _accepted_work(self, attempt: str, *, keeps_later: bool) -> Callable[[], None]:
        state, instance = self._find(attempt)
        kernel = accepted_kernel(self.session, self.state, attempt)
        source = (state.source or "").encode()
        if state.accepted:
            return lambda: self.store.accept(instance.task, source, kernel, keeps_later=keeps_later)
        return lambda: self.store.withdraw(instance.task, kernel)

    # Ends

    async def flush(self) -> None:
        """Bring the complete pieces of the journal to the branch `_journal`."""
        async with self._git:
            await self._write_pieces()

    async def _write_pieces(self) -> None:
        while self._pieces:
            piece = self._pieces[0]
            try:
                await self._run(partial(self._write_piece, piece))
            except StoreDamaged:
                await self._rebuild()
            if self._pieces and self._pieces[0] is piece:
                self._pieces.popleft()

    def _write_piece(self, piece: Piece) -> None:
        # Sync first, so that git is never ahead of the journal.
        self._sync(self._writer.last_seq)
        with self.files.journal.open("rb") as journal:
            journal.seek(piece.start)
            data = {segment_name(piece.first_seq): journal.read(piece.end - piece.start)}
        files = data | dict(piece.files) | read_texts(self.files, piece.texts)
        self.store.extend_journal(self.session, files, message=piece.message(self.session), wall=piece.wall)

    async def _rebuild(self, *, keeps_journal: bool = False) -> None:
        """Write all branches of the session anew from its journal; with `keeps_journal`, not a `_journal` that is whole."""

        def work() -> Rebuilt:
            self._sync(self._writer.last_seq)
            rebuilt = rebuild(self.store.repository, self.files)
            is_new = self.store.adopt(self.session, rebuilt.branches, keeps_journal=keeps_journal)
            return rebuilt if is_new else rebuilt._replace(end=0)

        rebuilt = await self._run(work)
        while self._pieces and self._pieces[0].end <= rebuilt.end:
            self._pieces.popleft()
        for attempt, commit in rebuilt.commits.items():
            self._note_commit(attempt, commit, read_seq=0)

    async def keep_summary(self, *, at_end: bool = False) -> None:
        """Write what lists show of a long journal, if it grew and, before the end, the last summary is long enough ago."""
        began = time.monotonic()
        is_due = at_end or began >= self._summary_due
        if not is_due or self._writer.size < LONG_BYTES or self._summarised_seq == self.state.last_seq:
            return
        self._summarised_seq = self.state.last_seq
        with self.files.journal.open("rb") as journal:
            kept = summary_of(self.state, journal, self._writer.size)
        self._summary_due = began + (time.monotonic() - began) / SUMMARY_SHARE
        await self._in_thread(partial(keep_summary, self.files, kept))

    def uncommitted(self) -> list[str]:
        """Returns the judged attempts without a commit.

        Attempts that had a commit come first, in its order; the others in the order of their verdicts.
        """
        waiting = [
            attempt
            for attempt in self.state.attempts()
            if attempt.commit is None and attempt.verdict is not None and attempt.proposed is not None
        ]
        waiting.sort(key=lambda attempt: (attempt.committed_seq or math.inf, attempt.judged_seq))
        return [attempt.attempt for attempt in waiting]

    async def commit_all(self) -> None:
        """Commit every judged attempt that has no commit."""
        for attempt in self.uncommitted():
            await self.commit_attempt(attempt)

    async def settle(self) -> None:
        """Bring everything to the store; what it lost is written again. Raises `StoreBroken` if the store lacks a part."""
        await self.commit_all()
        await self.flush()
        await self.mend()

    async def mend(self, *, is_damaged: bool = False) -> None:
        """Write the session's branches again if the store lost a part, or if `is_damaged`; `StoreBroken` if that fails."""
        if not is_damaged and await self._run(self._is_complete):
            return
        async with self._git:
            await self._rebuild(keeps_journal=not is_damaged)
        if not await self._run(self._is_complete):
            raise StoreBroken(f"the store lost objects of {self.session}; run: {REPAIR}")

    def _is_complete(self) -> bool:
        """True if the store has all that the session's branches and its attempts' commits reach; one git process."""
        commits = [attempt.commit for attempt in self.state.attempts() if attempt.commit is not None]
        return self.store.session_is_complete(self.session, commits)

    async def finish(self) -> None:
        """Bring the finished session to the store, pack, and compress its journal.

        Raises `StoreBroken` if the store lacks a part; the journal then stays as it is. A store that cannot be packed is a
        warning in the journal.
        """
        await self.settle()
        async with self._git:
            trouble = await self._run(self._pack)
        if trouble:
            self.record(Notice(level="warning", message=trouble))
            await self.settle()
        if not await self._run(partial(has_whole_journal, self.store, self.files)):
            await self.mend(is_damaged=True)
        async with self._git:
            await self._run(self._put_away)
        await self._in_thread(self.close)

    async def put_down(self) -> None:
        """Store what a command added at rest: `finish` a finished session, else `flush`."""
        await (self.finish() if self.state.finished else self.flush())

    def _pack(self) -> str:
        """Pack the store; returns why that failed, else an empty string."""
        try:
            self.store.repository.pack()
        except StoreBroken as error:
            return f"{self.session} is in the store, but the store cannot be packed ({error}); run: {REPAIR}"
        return ""

    def _put_away(self) -> None:
        # Without a pack, the names of the session's objects may not be on the disk yet.
        self.store.repository.sync_objects()
        self._sync(self._writer.last_seq)
        try:
            compress_journal(self.files.journal)
        except OSError as error:
            why = error.strerror or str(error)
            raise StoreBroken(
                f"the journal {self.files.journal} cannot be compressed ({why}); make room, then resume"
            ) from error
        # Not before: without room, the engine records that it stops.
        self._writer.close()
        ListedSession(self.files).info()  # it keeps the summary
        self.files.tidy()

    def close(self) -> None:
        """Close the session as it is; it can be resumed. Later events are refused."""
        try:
            self._writer.close()
        finally:
            self.store.close()
            self._lock.release()
