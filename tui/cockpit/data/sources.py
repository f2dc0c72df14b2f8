"""Where events come from: a running session's journal, or the whole of a session that is on disk.

Both sides hand over what is due and nothing else; who draws does not know which one it has. A `LiveTail` reads in a thread of its
own, so that a slow file system never holds the screen.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sessions.errors import SessionsError
from sessions.events import AnyEvent
from sessions.home import Home
from sessions.journal.codec import Skipped
from sessions.journal.journal import JournalTail
from sessions.journal.reader import JournalReader
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
    journal: JournalReader | None = None
    """Reads the events again."""


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
    """Why the journal could not be read; one line."""
    is_left: bool = False
    """True if no engine runs the session and the store does not have all of it."""
    starting: bool = False
    """True until the engine can be reached for the first time; it counts as running."""
    reachable: bool = False
    """True if an engine that runs can be reached."""


class LiveTail:
    """The journal of a session as it grows, and whether its engine still runs."""

    def __init__(
        self,
        home: Home,
        session: str,
        *,
        poll_s: float = POLL_S,
        engine: EngineStart | None = None,
    ) -> None:
        self._home = home
        self._session = session
        self._poll_s = poll_s
        self._engine = engine
        self._queue: deque[AnyEvent | Skipped] = deque()
        self._stop = threading.Event()
        self._reader: JournalReader | None = None
        self._last_seq = 0
        self._thread: threading.Thread | None = None
        self.health = TailHealth(self._is_starting or home.files(session).running, starting=self._is_starting)

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
        return EventBatch(taken, journal=self._reader)

    def close(self) -> None:
        """Stop reading; does not wait for the thread, which a slow file system may hold."""
        self._stop.set()

    def _read(self) -> None:
        live = self._home.files(self._session)
        turns = max(1, round(ALIVE_EVERY_S / self._poll_s))
        turn = 0
        with JournalTail(live.journal) as tail:
            while not self._stop.wait(self._poll_s if turn else 0.0):
                # Asked before reading: an engine that is gone by now has written all that it ever will.
                starting = self._is_starting
                due = turn % turns == 0 or self.health.starting
                running = starting or (live.running if due else self.health.running)
                error = ""
                try:
                    if due or not running:
                        tail.follow()
                    self._read_in_portions(tail)
                except (OSError, SessionsError) as problem:
                    why = problem.strerror if isinstance(problem, OSError) else None
                    error = f"cannot read the journal: {why or problem}"
                is_left = live.journal.exists() if due else self.health.is_left
                self.health = TailHealth(
                    running, error, is_left and not running, starting, running and live.reachable
                )
                turn += 1

    def _read_in_portions(self, tail: JournalTail) -> None:
        """Read what is new; a long journal in portions, so that its events are never in memory all at once."""
        while not self._stop.is_set():
            events = tail.read_new(most_bytes=PORTION_BYTES)
            self._reader = tail.reader
            self._put(events, tail.skipped)
            if not events:
                return
            while self.behind > MOST_EVENTS and not self._stop.wait(BEHIND_S):
                pass

    def _put(self, events: Sequence[AnyEvent], skipped: list[Skipped]) -> None:
        self._queue.extend(skipped)
        skipped.clear()
        for event in events:
            if event.seq > self._last_seq:
                self._last_seq = event.seq
                self._queue.append(event)
