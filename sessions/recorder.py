"""The one place where a running engine's events go: journal first, then state, then git.

The journal is the truth. Git follows it and can always be made from it again (`sessions.reconcile`), so a failure of git costs
no event. All methods belong to one thread, the event loop's; what blocks runs in another thread, one piece at a time.
"""

from __future__ import annotations

import asyncio
import difflib
import math
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from .attempt_files import Reasoning, attempt_files, attempt_message, exam_files
from .description import summarise
from .errors import HomeNotWritable, NoSuchAttempt, NotDecidable, SessionBusy, SessionExists, StoreBroken
from .events import (
    AnyEvent,
    AttemptCommitted,
    DecisionMade,
    DecisionUndone,
    Event,
    SessionStarted,
)
from .files import FileLock
from .fold import apply
from .home import Home, LiveFiles
from .journal import Clock, JournalWriter, open_journal
from .names import split_attempt
from .segments import Segments
from .state import AttemptState, InstanceState, SessionState
from .store import AcceptedKernel, Store, attempt_branch

E = TypeVar("E", bound=Event)

LOCK_WAIT_S = 1.0
"""For the session's lock: readers that ask who holds it hold it for microseconds."""
FLUSH_BYTES = 256 << 10
"""Journal bytes that are not in git yet before the next attempt's commit takes them along."""

R = TypeVar("R")


class Recorder:
    """A session being recorded; holds its lock for as long as it lives. Made by `begin` or `sessions.reconcile.resume`."""

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
        """The fold of all events so far; others read it, nobody else writes it."""
        self._lock = lock
        self._writer = writer
        self._reasoning = Reasoning()
        self._segments = segments or Segments(store, live)
        self._git = asyncio.Lock()
        self._working = threading.Lock()
        self._syncing = threading.Lock()
        self._synced_seq = 0
        for event in events:
            self._take(event)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @classmethod
    def begin(cls, home: Home, started: SessionStarted, *, clock: Clock | None = None) -> Recorder:
        """Start recording a new session, whose first event is on disk when this returns.

        `HomeNotWritable`, `StoreBroken`, or `SessionBusy` and `SessionExists` when a session of this name is there already.
        """
        home.ensure()
        live = home.live(started.session)
        lock = FileLock(live.lock)
        try:
            live.folder.mkdir(mode=0o700, exist_ok=True)
            if not lock.acquire(wait_s=LOCK_WAIT_S):
                raise SessionBusy(started.session)
            if live.journal.exists():
                raise SessionExists(started.session)
            store = Store.of(home)
            try:
                writer = open_journal(live.journal, clock=clock).writer
                recorder = cls(home, live, lock=lock, writer=writer, store=store)
                recorder.record(started)
            except BaseException:
                store.close()
                raise
        except OSError as error:
            lock.release()
            raise HomeNotWritable(home.root, why=error.strerror or str(error)) from error
        except BaseException:
            lock.release()
            raise
        return recorder

    @property
    def session(self) -> str:
        """The session's name."""
        return self.live.session

    # Events

    def record(self, event: E) -> E:
        """Take an event in and return it with its number and times; one of `DURABLE` is on disk when this returns."""
        written = self._writer.append(event)
        self._take(written)
        return written

    async def record_durable(self, event: E) -> E:
        """Like `record`, waiting for the disk off the loop: act on the event only when this returned."""
        written = self._writer.write(event)
        self._take(written)
        await asyncio.to_thread(self._sync, written.seq)
        return written

    def _sync(self, seq: int) -> None:
        """Have everything up to `seq` on disk; those who come while the disk works share the next round."""
        with self._syncing:
            if self._synced_seq < seq:
                reached = self._writer.last_seq
                self._writer.sync()
                self._synced_seq = reached

    def _take(self, event: Event) -> None:
        apply(self.state, cast("AnyEvent", event))
        self._reasoning.see(event)

    async def _run(self, work: Callable[[], R]) -> R:
        return await asyncio.to_thread(self._run_now, work)

    def _run_now(self, work: Callable[[], R]) -> R:
        # Not only the asyncio lock: a caller that is cancelled lets go of that one while its thread still works.
        with self._working:
            return work()

    # Attempts

    async def commit_attempt(self, attempt: str) -> str:
        """Commit a judged attempt and return the id; call it when nothing more is asked for the attempt.

        Calls that finish later are in the journal, but not in its tree. Doing it again is harmless.
        """
        async with self._git:
            commit = await self._run(self._attempt_work(attempt))
            self._note_commit(attempt, commit)
            if self._segments.is_due(self._writer.size, limit_bytes=FLUSH_BYTES):
                await self._run(self._flush_work())
        return commit

    def commit_attempt_now(self, attempt: str) -> str:
        """`commit_attempt` for a caller without an event loop."""
        commit = self._run_now(self._attempt_work(attempt))
        self._note_commit(attempt, commit)
        return commit

    def _attempt_work(self, attempt: str) -> Callable[[], str]:
        state, instance = self._find(attempt)
        if state.evaluation is None:
            raise NotDecidable(f"{attempt} is not judged, so there is nothing to commit")
        parents = self._parents(state, instance)
        if state.commit is not None and self._is_built_on(state, instance):
            known = state.commit
            return lambda: known
        files = attempt_files(instance, state, self._reasoning.of(state))
        message, wall = attempt_message(state), state.judged_wall
        branch = attempt_branch(self.session, instance.key)
        return lambda: self.store.commit(branch, files, parents=parents, message=message, wall=wall)

    def _parents(self, attempt: AttemptState, instance: InstanceState) -> list[str]:
        """The base's commit, then that of the attempt committed before where that is another one.

        Attempts of one instance may be under way at once, so the order is that of their commits, which the journal keeps.
        """
        parents = []
        if attempt.base is not None:
            base, _ = self._find(attempt.base)
            if base.commit is not None:
                parents.append(base.commit)
        order = attempt.committed_seq or math.inf
        before = [each for each in instance.attempts if each.commit and 0 < each.committed_seq < order]
        last = max(before, key=lambda each: each.committed_seq, default=None)
        if last is not None and last.commit is not None and last.commit not in parents:
            parents.append(last.commit)
        return parents

    def _is_built_on(self, attempt: AttemptState, instance: InstanceState) -> bool:
        """Whether something refers to the attempt's commit, so that it must stay as it is."""
        if attempt.decision is not None:
            return True
        if any(each.committed_seq > attempt.committed_seq and each.commit for each in instance.attempts):
            return True
        return any(each.base == attempt.attempt and each.commit for each in self.state.attempts())

    def _note_commit(self, attempt: str, commit: str) -> None:
        state, instance = self._find(attempt)
        if state.commit != commit:
            branch = attempt_branch(self.session, instance.key)
            self.record(AttemptCommitted(attempt=attempt, commit=commit, branch=branch))

    def _find(self, attempt: str) -> tuple[AttemptState, InstanceState]:
        return find_attempt(self.state, attempt)

    # Decisions

    async def decide(self, decision: DecisionMade | DecisionUndone) -> Event:
        """Record a person's decision or its undoing, durable, then bring the branch `accepted` in step.

        `NoSuchAttempt` or `NotDecidable` when it cannot be.
        """
        check_decision(self.state, decision)
        written = await self.record_durable(decision)
        await self.sync_accepted(decision.attempt)
        return written

    async def sync_accepted(self, attempt: str) -> None:
        """Make `accepted` say what the standing decision about an attempt says."""
        if self._find(attempt)[0].commit is None:
            await self.commit_attempt(attempt)
        async with self._git:
            await self._run(self._accepted_work(attempt))

    def decide_now(self, decision: DecisionMade | DecisionUndone) -> Event:
        """`decide` for a caller without an event loop."""
        check_decision(self.state, decision)
        written = self.record(decision)
        self.sync_accepted_now(decision.attempt)
        return written

    def sync_accepted_now(self, attempt: str) -> None:
        """`sync_accepted` for a caller without an event loop."""
        if self._find(attempt)[0].commit is None:
            self.commit_attempt_now(attempt)
        self._run_now(self._accepted_work(attempt))

    def _accepted_work(self, attempt: str) -> Callable[[], None]:
        state, instance = self._find(attempt)
        kernel = accepted_kernel(self.session, self.state, attempt)
        source = (state.source or "").encode()
        if state.decision is not None and state.decision.accepted:
            return lambda: self.store.accept(instance.task, source, kernel)
        return lambda: self.store.withdraw(instance.task, kernel)

    # Ends

    async def flush(self) -> None:
        """Bring the `_journal` branch up to the last event."""
        async with self._git:
            await self._run(self._flush_work())

    def flush_now(self) -> None:
        """`flush` for a caller without an event loop."""
        self._run_now(self._flush_work())

    def _flush_work(self) -> Callable[[], None]:
        size, seq, summary, started = (
            self._writer.size,
            self._writer.last_seq,
            summarise(self.state),
            self.state.started,
        )
        exams = exam_files(self.state)

        def work() -> None:
            # Synced first, so that git is never ahead of the journal.
            self._sync(seq)
            self._segments.flush(size, summary=summary, started=started, exams=exams)

        return work

    def uncommitted(self) -> list[str]:
        """Judged attempts that git lacks: those that it once had in their order then, the others by their verdicts'."""
        waiting = [
            each
            for each in self.state.attempts()
            if each.evaluation and each.commit is None and each.source is not None
        ]
        waiting.sort(key=lambda each: (each.committed_seq or math.inf, each.judged_seq))
        return [attempt.attempt for attempt in waiting]

    async def finish(self) -> None:
        """After the session's last event: all of it into git, read back and compared, packed, the live folder put away.

        `StoreBroken` when git does not give back what the journal holds; the live folder stays then.
        """
        for attempt in self.uncommitted():
            await self.commit_attempt(attempt)
        await self.flush()
        async with self._git:
            await self._run(self._put_away)
        self.close()

    def finish_now(self) -> None:
        """`finish` for a caller without an event loop."""
        for attempt in self.uncommitted():
            self.commit_attempt_now(attempt)
        self.flush_now()
        self._run_now(self._put_away)
        self.close()

    def _put_away(self) -> None:
        if self.store.session_bytes(self.session) != self.live.journal.read_bytes():
            raise StoreBroken(
                f"the store's journal of {self.session} differs from {self.live.journal}; both are kept"
            )
        self.store.repository.pack()
        put_away(self.live)

    def close(self) -> None:
        """Let the session go as it is: it can be resumed. Events after this are refused."""
        try:
            self._writer.close()
        finally:
            self.store.close()
            self._lock.release()


def find_attempt(state: SessionState, attempt: str) -> tuple[AttemptState, InstanceState]:
    """The attempt of this name and its instance; `NoSuchAttempt` with the nearest names when there is none."""
    try:
        return state.attempt(attempt), state.instances[split_attempt(attempt).instance]
    except KeyError:
        names = [each.attempt for each in state.attempts()]
        raise NoSuchAttempt(attempt, nearest=difflib.get_close_matches(attempt, names, n=3)) from None


def check_decision(state: SessionState, decision: DecisionMade | DecisionUndone) -> None:
    """`NoSuchAttempt` or `NotDecidable` when the decision makes no sense in this state."""
    attempt, _ = find_attempt(state, decision.attempt)
    if attempt.evaluation is None:
        raise NotDecidable(f"{decision.attempt} is not judged yet; decide when it has a verdict")
    if isinstance(decision, DecisionUndone) and attempt.decision is None:
        raise NotDecidable(f"no decision about {decision.attempt} stands, so there is nothing to undo")


def accepted_kernel(session: str, state: SessionState, attempt: str) -> AcceptedKernel:
    """What `decision.json` says of the standing, or just undone, decision about a judged attempt."""
    found, _ = find_attempt(state, attempt)
    decision = found.decision
    if found.evaluation is None:
        raise NotDecidable(f"{attempt} is not judged")
    return AcceptedKernel(
        session=session,
        attempt=attempt,
        commit=found.commit or "",
        why=decision.why if decision else "",
        by=decision.by if decision else "",
        wall=decision.wall if decision else state.last_wall or 0.0,
        verdict=found.evaluation.verdict,
    )


def put_away(live: LiveFiles) -> None:
    """Remove a live folder in one step as others see it, and what such a removal left when it was interrupted."""
    live.folder.rename(live.folder.with_name(f".{live.session}.gone-{secrets.token_hex(4)}"))
    for gone in live.folder.parent.glob(".*.gone-*"):
        # Another process may be at the same leftovers.
        shutil.rmtree(gone, ignore_errors=True)
