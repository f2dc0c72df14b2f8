"""Where events come from: a running session's journal, or the whole of a session that is on disk.

Both sides hand over what is due and nothing else; who draws does not know which one it has. A `LiveTail` reads in a thread of its
own, so that a slow file system never holds the screen.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sessions.errors import NoSuchSession, SessionsError
from sessions.events import AnyEvent
from sessions.home import Home
from sessions.journal.codec import Skipped
from sessions.journal.journal import JournalTail
from sessions.state.state import SessionState

if TYPE_CHECKING:
    from engine.process.launch import EngineStart

POLL_S = 0.1
ALIVE_EVERY_S = 1.0
PORTION_BYTES = 1 << 20
BEHIND_S = 0.02
"""Between two looks whether the screen has taken what was read."""
MOST_EVENTS = 4000
"""Events folded in one turn of the screen: some 20 ms."""


class EventBatch(NamedTuple):
    """What is due now."""

    events: Sequence[AnyEvent | Skipped] = ()
    state: SessionState | None = None
    """A whole other state to go on from, after a jump."""


class EventSource(Protocol):
    """Events of one session, at the pace they should be shown."""

    @property
    def session(self) -> str:
        """The session's name."""

    def start(self) -> None:
        """Begin; nothing is read before."""

    def take(self, now: float) -> EventBatch:
        """What is due by `now` (seconds of a monotonic clock), in order; never waits."""

    def close(self) -> None:
        """Let files and threads go."""


@dataclass(frozen=True, slots=True)
class TailHealth:
    """What is known of the engine behind a live session."""

    running: bool
    error: str = ""
    """Why the journal or the store could not be read; one line."""
    is_left: bool = False
    """True if no engine runs the session and its live files are still there: it is not moved to the store."""
    starting: bool = False
    """True until the engine can be reached for the first time; it counts as running."""
    reachable: bool = False
    """True if an engine that runs can be reached."""


class LiveTail:
    """The journal of a session as it grows, whether its engine still runs, and what the store has after it ended."""

    def __init__(
        self,
        home: Home,
        session: str,
        *,
        poll_s: float = POLL_S,
        stored: Callable[[Home, str], Sequence[AnyEvent]] | None = None,
        engine: EngineStart | None = None,
    ) -> None:
        self._home = home
        self._session = session
        self._poll_s = poll_s
        self._stored = stored
        self._engine = engine
        self._queue: deque[AnyEvent | Skipped] = deque()
        self._stop = threading.Event()
        self._look_in_store = threading.Event()
        self._last_seq = 0
        self._mark: tuple[int, ...] | None = None
        """The store's mark of the session when it was last read."""
        self._thread: threading.Thread | None = None
        self.health = TailHealth(self._is_starting or home.live(session).running, starting=self._is_starting)

    @property
    def session(self) -> str:
        """The session's name."""
        return self._session

    @property
    def behind(self) -> int:
        """Events read and not yet taken."""
        return len(self._queue)

    @property
    def _is_starting(self) -> bool:
        return self._engine is not None and not self._engine.is_done

    def start(self) -> None:
        """Start reading."""
        self._thread = threading.Thread(target=self._read, name=f"tail {self._session}", daemon=True)
        self._thread.start()

    def take(self, now: float) -> EventBatch:
        """What was read since."""
        taken: list[AnyEvent | Skipped] = []
        while self._queue and len(taken) < MOST_EVENTS:
            taken.append(self._queue.popleft())
        return EventBatch(taken)

    def look_again(self) -> None:
        """A decision was made: where no engine wrote it into the journal, it stands in the store alone.

        Who writes a decision holds the session as an engine does, so what looks like an engine may be gone at the next look: the
        store is read once nothing runs.
        """
        self._look_in_store.set()

    def close(self) -> None:
        """Stop reading; does not wait for the thread, which a slow file system may hold."""
        self._stop.set()

    def _read(self) -> None:
        live = self._home.live(self._session)
        turns = max(1, round(ALIVE_EVERY_S / self._poll_s))
        turn = 0
        with ExitStack() as stack:
            tail = stack.enter_context(JournalTail(live.journal))
            while not self._stop.wait(self._poll_s if turn else 0.0):
                # Asked before reading: an engine that is gone by now has written all that it ever will.
                starting = self._is_starting
                due = turn % turns == 0 or self.health.starting
                running = starting or (live.running if due else self.health.running)
                error = ""
                try:
                    if due and tail.is_replaced:
                        tail = stack.enter_context(JournalTail(live.journal))
                        self._put(tail.read_new(), [])
                        tail.skipped.clear()  # of the events before; they are counted
                    self._read_in_portions(tail)
                except OSError as problem:
                    error = f"cannot read the journal: {problem.strerror or problem}"
                if not running:
                    if due and not live.journal.exists():
                        self._look_for_changes()
                    error = error or self._read_store()
                is_left = live.journal.exists() if due else self.health.is_left
                self.health = TailHealth(
                    running, error, is_left and not running, starting, running and live.reachable
                )
                turn += 1

    def _read_in_portions(self, tail: JournalTail) -> None:
        """Read what is new; a long journal in portions, so that its events are never in memory all at once."""
        while not self._stop.is_set():
            events = tail.read_new(most_bytes=PORTION_BYTES)
            self._put(events, tail.skipped)
            if not events:
                return
            while self.behind > MOST_EVENTS and not self._stop.wait(BEHIND_S):
                pass

    def _look_for_changes(self) -> None:
        """A person may decide in another shell after the session went to the store."""
        mark = self._home.stored_mark(self._session)
        if mark != self._mark:
            self._mark = mark
            self._look_in_store.set()

    def _read_store(self) -> str:
        """Takes what the store has, if that was asked for.

        Else why it could not be read, in one line, and it stays asked for.
        """
        if self._stored is None or not self._look_in_store.is_set():
            return ""
        self._look_in_store.clear()
        try:
            self._put(self._stored(self._home, self._session), [])
        except NoSuchSession:
            return ""
        except (OSError, SessionsError) as problem:
            self._look_in_store.set()
            why = problem.strerror if isinstance(problem, OSError) else None
            return f"cannot read the store: {why or problem}"
        return ""

    def _put(self, events: Sequence[AnyEvent], skipped: list[Skipped]) -> None:
        self._queue.extend(skipped)
        skipped.clear()
        for event in events:
            if event.seq > self._last_seq:
                self._last_seq = event.seq
                self._queue.append(event)
