"""A running session followed without a cockpit: its events as they happen, until it ends or its engine is gone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum

from engine.control import send
from engine.errors import EngineError
from sessions import JournalTail, SessionState, apply
from sessions.catalog import journal_of
from sessions.codec import encode
from sessions.events import AnyEvent, EngineStopped, SessionFinished
from sessions.home import Home

from .diagnostics import OutputGone, leaves, say
from .narrate import Narrator
from .plain import emit, emit_line

POLL_S = 0.1
"""How often the journal is looked at; asking costs one system call when nothing is new."""
GONE_AFTER_S = 1.0
"""How long a lock must be free, with nothing new in the journal, before an engine counts as gone."""


class Ending(Enum):
    """Why following a session ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    """The engine left because it was asked to; the session can be resumed."""
    FAILED = "failed"
    """The engine left in order because model, judge, disk or itself failed; the session can be resumed."""
    GONE = "gone"
    """The engine ended without a word; the session can be resumed."""


async def events(home: Home, session: str, *, after: int = 0) -> AsyncIterator[AnyEvent]:
    """
    Every event of a session behind number `after`, as it is written, until no engine holds the session any more.

    When the session was put away meanwhile, the rest comes from the store.
    """
    live = home.live(session)
    loop = asyncio.get_running_loop()
    last = after
    ended = False
    free_since: float | None = None
    with JournalTail(live.journal, after=after) as tail:
        while True:
            # Asked before reading: what an engine wrote before it let go is then read for certain.
            running = live.running
            fresh = tail.read_new()
            for event in fresh:
                last, ended = event.seq, isinstance(event, SessionFinished | EngineStopped)
                yield event
            if running or fresh:
                free_since = None
            elif ended:
                return
            else:
                free_since = free_since or loop.time()
                if loop.time() - free_since >= GONE_AFTER_S:
                    break
            await asyncio.sleep(POLL_S)
    if not live.journal.exists():
        for event in (await asyncio.to_thread(journal_of, home, session)).events:
            if event.seq > last:
                yield event


class Telling:
    """Prints events as lines for people, or as JSON lines, and keeps the state they fold to."""

    def __init__(self, *, as_json: bool) -> None:
        self._narrator = Narrator()
        self._as_json = as_json
        self.interrupted = False

    @property
    def state(self) -> SessionState:
        """The fold of all that was told."""
        return self._narrator.state

    def prime(self, known: Iterable[AnyEvent]) -> None:
        """Fold what happened before, and print none of it."""
        for event in known:
            apply(self.state, event)

    def take(self, event: AnyEvent) -> None:
        """Fold the event and print what it says."""
        if self._as_json:
            apply(self.state, event)
            emit_line(encode(event))
            return
        for line in self._narrator.tell(event):
            emit(line)


async def follow(home: Home, session: str, telling: Telling, *, stoppable: bool) -> Ending:
    """
    Tell a session until it ends. With `stoppable` an interrupt stops the engine, and is noted as `telling.interrupted`.

    A second interrupt, or one where nothing may be stopped, is a `KeyboardInterrupt`; like `OutputGone` it leaves the engine
    running.
    """
    try:
        return await _follow(home, session, telling, stoppable=stoppable)
    except* OutputGone as gone:
        why = next(leaf.why for leaf in leaves(gone) if isinstance(leaf, OutputGone))
    raise OutputGone(why)


async def _follow(home: Home, session: str, telling: Telling, *, stoppable: bool) -> Ending:
    async with asyncio.TaskGroup() as group:
        told = group.create_task(_tell(home, session, telling), name="tell the session")

        def interrupt() -> None:
            if telling.interrupted or not stoppable:
                told.cancel()
                return
            telling.interrupted = True
            say(f"stopping {session}; interrupt again to leave it running")
            group.create_task(_stop(home, session), name="stop the engine")

        with on_interrupt(interrupt):
            await asyncio.wait({told})
    if told.cancelled():
        raise KeyboardInterrupt
    return told.result()


async def _tell(home: Home, session: str, telling: Telling) -> Ending:
    last: AnyEvent | None = None
    async for event in events(home, session, after=telling.state.last_seq):
        telling.take(event)
        last = event
    if telling.state.finished:
        return Ending.FINISHED
    if isinstance(last, EngineStopped):
        return Ending.FAILED if last.failed else Ending.STOPPED
    return Ending.STOPPED if telling.state.stopped else Ending.GONE


async def _stop(home: Home, session: str) -> None:
    try:
        answer = await send(home, session, "stop", reason="interrupted")
    except EngineError as error:
        say(f"the engine cannot be stopped ({error}); interrupt again to leave it running")
        return
    if not answer.ok:
        say(f"the engine does not stop ({answer.error}); interrupt again to leave it running")


@contextmanager
def on_interrupt(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` in the running loop for each SIGINT and SIGTERM, in place of what they do otherwise."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
