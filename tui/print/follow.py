"""Follow a running session without a cockpit: its events as lines until it ends, then its summary and the next command."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from enum import Enum

from engine.errors import EngineError
from engine.process.control import send
from sessions import JournalTail, SessionState
from sessions.events import AnyEvent, EngineStopped, SessionFinished, Stop
from sessions.home import Home
from sessions.journal.codec import encode
from sessions.state.folding import apply
from tui.diagnostics import ExitCode, OutputGone, leaves, say, silence
from tui.facts.vocabulary import next_command, not_stored

from .narrate import Narrator
from .plain import emit, emit_line
from .summary import next_line, summary

POLL_S = 0.1
"""Seconds between two reads of the journal; a read costs one system call if nothing is new."""
AWAY_AFTER_S = 2.0
"""Seconds after the last event from which `events` says that the engine still puts the session away."""
GONE_AFTER_S = 1.0
"""Seconds with a free lock and no new event after which the engine counts as gone."""


class FollowEnding(Enum):
    """Why following a session ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    """The engine stopped on request; the session can be resumed."""
    FAILED = "failed"
    """The engine stopped in order after a failure of model, judge, disk or engine; the session can be resumed."""
    GONE = "gone"
    """The engine ended without a last event; the session can be resumed."""


async def events(home: Home, session: str, state: SessionState) -> AsyncIterator[AnyEvent]:
    """
    Yield every event of a session after those of `state` as it is written, until no engine holds the session.

    The state can be folded on: it reads large values from the journal. Prints one line if the engine takes long to put the
    session away.
    """
    live = home.files(session)
    loop = asyncio.get_running_loop()
    ended = False
    free_since: float | None = None
    last_time, is_told = loop.time(), False
    with JournalTail(live.journal, after=state.last_seq) as tail:
        while True:
            # Check the lock before reading: then no event of an engine that released the lock is lost.
            running = live.running
            new_events = tail.read_new()
            state.journal = tail.reader
            for event in new_events:
                ended = isinstance(event, SessionFinished | EngineStopped)
                yield event
            if new_events:
                last_time = loop.time()
            elif running and ended and not is_told and loop.time() - last_time >= AWAY_AFTER_S:
                is_told = True
                say(f"{session} is being put away in the store; for how long, see: wavedeck status {session}")
            if running or new_events:
                free_since = None
            elif ended:
                return
            else:
                free_since = free_since or loop.time()
                if loop.time() - free_since >= GONE_AFTER_S:
                    break
            await asyncio.sleep(POLL_S)


class EventPrinter:
    """Prints events as lines for people or as JSON lines, and folds them into a state."""

    def __init__(self, past: SessionState | None = None, *, as_json: bool) -> None:
        """Go on after the events of a state; they are not printed."""
        self._narrator = Narrator(past)
        self._as_json = as_json
        self.interrupted = False

    @property
    def state(self) -> SessionState:
        """State after all events so far."""
        return self._narrator.state

    def take(self, event: AnyEvent) -> None:
        """Fold the event and print its lines."""
        if self._as_json:
            apply(self.state, event)
            emit_line(encode(event))
            return
        for line in self._narrator.lines(event):
            emit(line)


async def follow(home: Home, session: str, printer: EventPrinter, *, stoppable: bool) -> FollowEnding:
    """
    Print a session until it ends. With `stoppable`, an interrupt stops the engine and sets `printer.interrupted`.

    A second interrupt, or any interrupt without `stoppable`, raises `KeyboardInterrupt`. This and `OutputGone` leave the
    engine running.
    """
    try:
        return await _follow(home, session, printer, stoppable=stoppable)
    except* OutputGone as gone:
        why = next(leaf.why for leaf in leaves(gone) if isinstance(leaf, OutputGone))
    raise OutputGone(why)


async def _follow(home: Home, session: str, printer: EventPrinter, *, stoppable: bool) -> FollowEnding:
    async with asyncio.TaskGroup() as group:
        printing = group.create_task(_print_events(home, session, printer), name="print the session")

        def interrupt() -> None:
            if printer.interrupted or not stoppable:
                printing.cancel()
                return
            printer.interrupted = True
            say(f"stopping {session}; interrupt again to leave it running")
            group.create_task(_stop(home, session), name="stop the engine")

        with on_interrupt(interrupt):
            await asyncio.wait({printing})
    if printing.cancelled():
        raise KeyboardInterrupt
    return printing.result()


async def _print_events(home: Home, session: str, printer: EventPrinter) -> FollowEnding:
    """Print the session's further events; return how it ended. `GONE`: its engine ended without a last event.

    A session is `STOPPED` too if its stop was printed earlier.
    """
    last: AnyEvent | None = None
    async for event in events(home, session, printer.state):
        printer.take(event)
        last = event
    if printer.state.finished:
        return FollowEnding.FINISHED
    if isinstance(last, EngineStopped):
        return FollowEnding.FAILED if last.failed else FollowEnding.STOPPED
    return FollowEnding.STOPPED if printer.state.stopped else FollowEnding.GONE


async def _stop(home: Home, session: str) -> None:
    try:
        answer = await send(home, session, Stop(reason="interrupted"))
    except EngineError as error:
        say(f"the engine cannot be stopped ({error}); interrupt again to leave it running")
        return
    if not answer.ok:
        say(f"the engine does not stop ({answer.error}); interrupt again to leave it running")


@contextmanager
def on_interrupt(act: Callable[[], None]) -> Iterator[None]:
    """Within the context, SIGINT and SIGTERM call `act` in the running loop instead of their default action."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def print_until_end(
    home: Home, session: str, *, as_json: bool, past: SessionState | None = None, stoppable: bool = True
) -> ExitCode:
    """
    Print a session's events until it ends, then its summary and the next command. Events of the state `past` are not printed.

    With `as_json`, standard output holds only events; the next command goes to standard error.
    """
    printer = EventPrinter(past, as_json=as_json)
    try:
        ending = await follow(home, session, printer, stoppable=stoppable)
    except KeyboardInterrupt:
        say(f"{session} is still running; come back with: wavedeck attach {session}")
        return ExitCode.INTERRUPTED
    except OutputGone as gone:
        silence(1)
        say(
            f"{gone.why or 'the output was closed'}; {session} is still running; come back with: wavedeck attach {session}"
        )
        return ExitCode.FAILED
    if not as_json:
        emit("")
        emit(summary(printer.state))
    return _next_step(home, session, ending, printer, as_json=as_json)


def _next_step(
    home: Home, session: str, ending: FollowEnding, printer: EventPrinter, *, as_json: bool
) -> ExitCode:
    is_stored = ending is FollowEnding.FINISHED and home.files(session).stored
    following = next_command(session, finished=is_stored)
    if ending is FollowEnding.GONE:
        say(
            f"the engine of {session} ended without a message, see {home.files(session).log}; "
            f"all its events are kept, go on with: {following}"
        )
        return ExitCode.FAILED
    if ending is FollowEnding.FINISHED and not is_stored:
        say(not_stored(session))
        return ExitCode.FAILED
    if as_json:
        say(f"next: {following}")
    else:
        emit(next_line(following))
    if ending is FollowEnding.FAILED:
        return ExitCode.FAILED
    return ExitCode.INTERRUPTED if printer.interrupted and ending is FollowEnding.STOPPED else ExitCode.DONE
