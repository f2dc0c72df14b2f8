"""Records the events of a session: first in the journal, then in the state, then in git.

The journal is the truth. Git can always be rebuilt from it (`sessions.store.reconcile`), so a failure of git loses no
event. Call all methods from one thread, the event loop's; blocking work runs in another thread, one piece at a time.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar, cast

from sessions.errors import CommandRefused, HomeNotWritable, SessionBusy, SessionExists, StoreBroken
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
from sessions.home import Home, LiveFiles
from sessions.journal.compact import held
from sessions.journal.journal import EventClock, JournalWriter, open_journal, read_journal
from sessions.listing.description import summarise
from sessions.listing.live_summary import LONG_BYTES, keep_summary, live_summary
from sessions.state.folding import apply_and_compact, fold
from sessions.state.state import AttemptState, InstanceState, SessionState, Words

from .attempt_commits import (
    Reasoning,
    attempt_files,
    attempt_message,
    committed,
    exam_files,
    is_built_on,
    parents_of,
    prompt_files,
)
from .decidable import accepted_kernel, find_attempt
from .segments import Segments
from .store import NewCommit, Store, attempt_branch

E = TypeVar("E", bound=Event)
C = TypeVar("C", bound=Command)

LOCK_WAIT_S = 1.0
"""For the session's lock: a reader that checks the lock holds it for microseconds."""
REPAIR = "wavedeck doctor --repair"
FLUSH_BYTES = 256 << 10
FLUSH_SHARE = 1 / 16
"""Journal bytes without a copy in git, at least, with which the next commit of an attempt also flushes the journal; in a long
journal this share of it. A flush reads the whole state, so a fixed size would cost ever more of the time."""
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
        live: LiveFiles,
        *,
        lock: FileLock,
        writer: JournalWriter,
        store: Store,
        segments: Segments | None = None,
        events: Iterable[Event] = (),
    ) -> None:
        self.home = home
        self.live = live
        self.store = store
        self.state = SessionState()
        """The fold of all events so far; only the recorder changes it."""
        self.masks = writer.masks
        """Every event is masked with them before anything acts on it."""
        self._lock = lock
        self._writer = writer
        self._reasoning = Reasoning()
        self._segments = segments or Segments(store, live)
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
        for event in events:
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
        live = home.live(started.session)
        try:
            with ExitStack() as undo:
                lock = FileLock(live.lock)
                undo.callback(lock.release)
                live.folder.mkdir(mode=0o700, exist_ok=True)
                if not lock.acquire(wait_s=LOCK_WAIT_S):
                    raise SessionBusy(started.session)
                if live.journal.exists():
                    raise SessionExists(started.session)
                store = Store.of(home)
                undo.callback(store.close)
                writer = open_journal(live.journal, clock=clock).writer
                recorder = cls(home, live, lock=lock, writer=writer, store=store)
                recorder.record(started)
                undo.pop_all()
        except OSError as error:
            raise HomeNotWritable(home.root, why=error.strerror or str(error)) from error
        return recorder

    @property
    def session(self) -> str:
        """The session's name."""
        return self.live.session

    # Events

    def record(self, event: E) -> E:
        """Record an event and return it with number and times; a `DurableEvent` is on disk when this returns."""
        written = self._writer.append(event)
        self._take(written)
        return written

    async def record_durable(self, event: E, *, first: Iterable[Event] = ()) -> E:
        """Like `record`, but waits for the disk in another thread; act on the event only after this returns.

        Events in `first` are recorded before it, and no other event comes between.
        """
        for earlier in first:
            self._take(self._writer.write(earlier))
        written = self._writer.write(event)
        self._take(written)
        await self._in_thread(partial(self._sync, written.seq))
        return written

    def _sync(self, seq: int) -> None:
        """Sync everything up to `seq`; callers that arrive during a sync share the next one."""
        with self._syncing:
            if self._synced_seq < seq:
                reached = self._writer.last_seq
                self._writer.sync()
                self._synced_seq = reached

    def _take(self, event: Event) -> None:
        apply_and_compact(self.state, cast("AnyEvent", event))
        self._reasoning.see(event)
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
                size = self._writer.size
                if self._segments.is_due(size, limit_bytes=max(FLUSH_BYTES, int(size * FLUSH_SHARE))):
                    await self._run(self._flush_work())
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
        commits = await self._run(lambda: self.store.commit_all(list(new.values())))
        for attempt, commit in zip(new, commits, strict=True):
            self._note_commit(attempt, commit)
            self._waiting.pop(attempt, None)
            # While a session is taken up, the prompts stay: the budget is not yet restored from them.
            if not self._blocks:
                self._forget_texts(self._find(attempt)[1])

    def _new_commit(self, attempt: AttemptState, instance: InstanceState, branch: str) -> NewCommit:
        files = attempt_files(instance, attempt, self._reasoning.of(attempt))
        parents = parents_of(self.state, attempt, instance)
        return NewCommit(branch, files, parents, attempt_message(attempt), attempt.judged_wall)

    def _forget_texts(self, instance: InstanceState) -> None:
        """Drop prompts and reasoning of the attempts with a final commit: they are most of a session's memory.

        A method that runs again needs only the replies; `recall_texts` reads the rest from the journal.
        """
        for attempt in committed(instance)[:-1]:
            for call in attempt.calls:
                if held(call, "messages") and not call.live:
                    self._reasoning.forget(call.call)
                    call.messages, call.reasoning_words = (), Words()

    async def recall_texts(self) -> None:
        """Read the texts that `_forget_texts` dropped."""
        journal = await self._in_thread(partial(read_journal, self.live.journal))
        self._reasoning = Reasoning()
        for event in journal.events:
            self._reasoning.see(event)
        for attempt in fold(journal.events).attempts():
            self._find(attempt.attempt)[0].calls = attempt.calls

    def _note_commit(self, attempt: str, commit: str) -> None:
        state, instance = self._find(attempt)
        if state.commit != commit:
            branch = attempt_branch(self.session, instance.key)
            self.record(AttemptCommitted(attempt=attempt, commit=commit, branch=branch))

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
            fetched = await self._run(self.store.last_fetched_decisions)
            last = fetched.get(self.session, 0)
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
        """Bring the `_journal` branch up to the last event."""
        async with self._git:
            await self._run(self._flush_work())

    async def rewrite_stored_journal(self) -> None:
        """Write the whole `_journal` branch again: for a branch that lacks objects."""
        self._segments.start_afresh()
        await self.flush()

    def _flush_work(self) -> Callable[[], None]:
        size, seq = self._writer.size, self._writer.last_seq
        summary, started = summarise(self.state), self.state.started
        files = exam_files(self.state) | prompt_files(self.state)

        def work() -> None:
            # Sync first, so that git is never ahead of the journal.
            self._sync(seq)
            self._segments.flush(size, summary=summary, started=started, files=files)

        return work

    async def keep_summary(self, *, at_end: bool = False) -> None:
        """Write what lists show of a long journal, if it grew and, before the end, the last summary is long enough ago."""
        began = time.monotonic()
        is_due = at_end or began >= self._summary_due
        if not is_due or self._writer.size < LONG_BYTES or self._summarised_seq == self.state.last_seq:
            return
        self._summarised_seq = self.state.last_seq
        live = live_summary(self.live, self.state, self._writer.size)
        self._summary_due = began + (time.monotonic() - began) / SUMMARY_SHARE
        await self._in_thread(partial(keep_summary, self.live, live))

    def uncommitted(self) -> list[str]:
        """Returns the judged attempts without a commit.

        Attempts that had a commit come first, in its order; the others in the order of their verdicts.
        """
        waiting = [
            attempt
            for attempt in self.state.attempts()
            if attempt.commit is None and attempt.verdict is not None and attempt.source is not None
        ]
        waiting.sort(key=lambda attempt: (attempt.committed_seq or math.inf, attempt.judged_seq))
        return [attempt.attempt for attempt in waiting]

    async def store_all(self) -> None:
        """Bring everything to the store."""
        await self.commit_all()
        await self.flush()

    async def commit_all(self) -> None:
        """Commit every judged attempt that has no commit."""
        for attempt in self.uncommitted():
            await self.commit_attempt(attempt)

    def is_complete(self) -> bool:
        """True if the store has all that the session's branches and its attempts' commits reach; one git process."""
        return self.store.session_is_complete(self.session, self._commits())

    async def write_lost(self) -> None:
        """Write again what the store lost: another program removed objects, for example `git gc --prune=now`."""
        await self.recall_texts()
        for instance in self.state.instances.values():
            await self._run(partial(self._unmark_lost, instance))
        await self.commit_all()
        if not await self._run(lambda: self.store.repository.is_complete(self._commits())):
            # An attempt with later calls got another id, and others still have its old commit as a parent.
            for attempt in self.state.attempts():
                attempt.commit = None
            await self.commit_all()
        if not await self._run(self.is_complete):
            await self.rewrite_stored_journal()
        await self.flush()

    def _commits(self) -> list[str]:
        return [attempt.commit for attempt in self.state.attempts() if attempt.commit is not None]

    def _unmark_lost(self, instance: InstanceState) -> None:
        """Mark as uncommitted the first attempt with a lost object and all later ones, because they build on it."""
        is_lost = False
        for attempt in committed(instance):
            is_lost = is_lost or not self.store.repository.is_whole(attempt.commit or "")
            if is_lost:
                attempt.commit = None

    async def settle(self) -> None:
        """Bring everything to the store and check it there; `StoreBroken` if the store lacks a part."""
        await self.store_all()
        if not await self._run(self.is_complete):
            await self.write_lost()
        async with self._git:
            await self._run(self._check_stored)

    async def finish(self) -> None:
        """Move the finished session to the store and remove its live folder.

        Commits everything, reads it back, compares, and packs. Raises `StoreBroken` if the store lacks a part; the
        live folder then stays. A store that cannot be packed is a warning in the journal.
        """
        await self.settle()
        async with self._git:
            trouble = await self._run(self._pack)
        if trouble:
            self.record(Notice(level="warning", message=trouble))
            await self.settle()
        async with self._git:
            await self._run(self._put_away)
        await self._in_thread(self.close)

    async def put_down(self) -> None:
        """Store what a command added at rest: `finish` a finished session, else `flush`."""
        await (self.finish() if self.state.finished else self.flush())

    def _check_stored(self) -> None:
        if self.store.session_bytes(self.session) != self.live.journal.read_bytes():
            raise StoreBroken(
                f"the store's journal of {self.session} differs from {self.live.journal}; both are kept"
            )
        if not self.is_complete():
            raise StoreBroken(
                f"the store lost objects of {self.session}; write them again with: wavedeck resume {self.session}"
            )

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
        self.live.put_away()

    def close(self) -> None:
        """Close the session as it is; it can be resumed. Later events are refused."""
        try:
            self._writer.close()
        finally:
            self.store.close()
            self._lock.release()
