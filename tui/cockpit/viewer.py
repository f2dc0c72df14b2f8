"""An app with one session open at a time: it reads, plays and closes it. What it looks like is `app`'s."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
from textual import work
from textual.worker import Worker, WorkerState, get_current_worker

from sessions import recorded_example as example
from sessions.errors import SessionsError
from sessions.home import Home
from sessions.state.state import SessionState
from tui.cockpit.data.feed import Feed
from tui.cockpit.data.replays import Replay
from tui.cockpit.data.sources import EventSource
from tui.cockpit.desk.doors import Doors
from tui.cockpit.dialogs.dialogs import TextDialog
from tui.cockpit.dialogs.layers import LayeredApp
from tui.cockpit.draw.lines import Line, clean
from tui.cockpit.terminal import terminal
from tui.diagnostics import write_crash
from tui.facts.vocabulary import counted, not_stored


@dataclass(frozen=True, slots=True)
class ExitNote:
    """What to tell the person after the screen is theirs again."""

    lines: tuple[str, ...] = ()
    failed: bool = False
    """The cockpit ended over an error of its own."""
    unsent: tuple[str, ...] = ()
    """One line for each command that the person gave and that has no answer."""


class Viewer(LayeredApp[ExitNote], inherit_bindings=False):
    """Opens sessions in threads and keeps the feed of the open one."""

    def __init__(self, home: Home, *, doors: Doors, speed: float) -> None:
        super().__init__(driver_class=terminal.TidyDriver)
        self.feed: Feed | None = None
        self.home = home
        self._doors = doors
        self._speed = speed
        self._looking = False
        self._away_from = 0
        """Event that the person saw last before this opening of the session."""
        self._left = ExitNote()
        """What to print about the session that the person left last."""

    def show_session(self) -> None:
        """Show the first screen of the session that was opened."""
        raise NotImplementedError

    def show_home(self) -> None:
        """Take every screen of the session away."""
        raise NotImplementedError

    def clock(self) -> float:
        """Return monotonic seconds."""
        return self._doors.clock()

    def wall(self) -> float:
        """Return seconds since the epoch: now, the moment that a replay shows, or the end of a session that is over."""
        last = self.feed.end_wall if self.feed is not None and self.feed.is_over else None
        return last if last is not None else self.present()

    def present(self) -> float:
        """Return seconds since the epoch: now, or the moment that a replay shows."""
        last = self.feed.state.last_wall if self.feed is not None and self.feed.replay is not None else None
        return last if last is not None else self._doors.wall()

    def open_session(self, session: str) -> None:
        """Open a session that goes on as it is now, the example as a replay at its start, any other as a replay at its end.

        Replaces a load in progress.
        """
        self.workers.cancel_group(self, "load")
        if self._doors.is_live(session):
            self._away_from = last_watched(self.home, session)
            self._watch(self._doors.open_live(session))
        else:
            is_example = session == example.NAME
            self._load(session, playing=is_example, speed=example.SPEED if is_example else None)

    @work(thread=True, exclusive=True, group="load", exit_on_error=False, name="reading the session")
    def _load(self, session: str, *, playing: bool, speed: float | None = None) -> None:
        worker = get_current_worker()

        def watch(replay: Replay) -> None:
            if not worker.is_cancelled:
                self._watch(replay)

        self.call_from_thread(self.notify, f"reading {session} ...", timeout=2)
        beginning = self._doors.load_beginning(session) if playing else None
        story = beginning or self._doors.load_story(session)
        if not playing:
            story = story.with_marks()
        replay = Replay(story, speed=speed or self._speed, playing=playing)
        if not playing:
            replay.seek(len(story.events))
        self.call_from_thread(watch, replay)
        if not story.is_whole and not worker.is_cancelled:
            story = self._doors.load_story(session)
            self.call_from_thread(replay.extend, story)
        if playing and not worker.is_cancelled:
            self.call_from_thread(replay.extend, story.with_marks())

    def _watch(self, source: EventSource) -> None:
        self._close_feed()
        self.feed = Feed(source)
        source.start()
        self.feed.drain(self._doors.clock())
        self.show_session()

    def look_again(self) -> None:
        """Take events that another process wrote: a running session's by its tail, else what the store has."""
        feed = self.feed
        if feed is not None and feed.replay is not None and feed.replay.at_end and not self._looking:
            self._looking = True
            self._extend(feed.replay)

    @work(thread=True, group="look", exit_on_error=False, name="reading the session again")
    def _extend(self, replay: Replay) -> None:
        try:
            if self._doors.mark(replay.session) != replay.story.mark:
                self.call_from_thread(replay.extend, self._doors.load_story(replay.session).with_marks())
        except (OSError, SessionsError):
            return  # asked again in a second; who decides hears of it
        finally:
            self._looking = False

    def reopen(self, session: str) -> None:
        """Open a session again, whose engine has started."""
        self.leave_session()
        self.open_session(session)

    def leave_session(self) -> None:
        """Close the session and go Home."""
        self.show_home()
        self._close_feed()

    def _close_feed(self) -> None:
        if self.feed is not None:
            self._left = self.exit_note()
            self.remember()
            self.feed.source.close()
            self.feed = None

    def remember(self) -> None:
        """Keep how far the person saw a session that runs."""
        feed = self.feed
        if feed is not None and feed.live is not None:
            remember(self.home, feed.session, feed.state)

    def show_what_happened(self) -> None:
        """Say once what happened since the person last watched the session, when all of that is read."""
        feed = self.feed
        if not self._away_from or feed is None or feed.live is None:
            return
        if feed.state.last_seq and not feed.live.behind:
            words = away_words(feed.state, self._away_from)
            self._away_from = 0
            if words:
                self.notify(words, timeout=20, markup=False)

    def exit_note(self) -> ExitNote:
        """Return how to come back to the open session, else to the session that was left last."""
        feed = self.feed
        if feed is None:
            return self._left
        name = feed.session
        if feed.replay is not None:
            return ExitNote((f"replay again with: wavedeck replay {name}",))
        if feed.is_unstored:
            return ExitNote((not_stored(name),))
        if feed.state.finished:
            return ExitNote((f"{name} is finished; replay it with: wavedeck replay {name}",))
        if feed.live is not None and feed.live.health.running:
            return ExitNote((f"{name} goes on without the cockpit; come back with: wavedeck attach {name}",))
        return ExitNote((f"{name} is not running; go on with: wavedeck resume {name}",))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker.group == "load" and event.state is WorkerState.ERROR and self.feed is None:
            self.show_home()
        self.tell_failure(event)

    def tell_failure(self, event: Worker.StateChanged) -> None:
        """When a thread or task failed, say so and keep the rest alive."""
        error = event.worker.error
        if event.state is not WorkerState.ERROR or error is None:
            return
        cause = error.__cause__ or error
        if isinstance(cause, SessionsError):
            self.notify(
                clean(str(cause)), title=event.worker.name, severity="error", timeout=20, markup=False
            )
            return
        file = write_crash(cause, self.home.root / "crashes")
        told: list[Line | str] = [
            f"{event.worker.name} failed: {type(cause).__name__}: {clean(str(cause))}",
            (),
            f"The traceback is in {file}",
            "The cockpit goes on; agents are not touched.",
        ]
        self.push_screen(TextDialog("something went wrong", told))


class LastWatched(msgspec.Struct, frozen=True):
    """How far a person saw a session."""

    seq: int
    """Number of the last event."""


def remember(home: Home, session: str, state: SessionState) -> None:
    """Keep how far the person saw a session that goes on; the file goes when the session is stored."""
    path = _file(home, session)
    if path.parent.is_dir() and state.last_seq:
        path.write_bytes(msgspec.json.encode(LastWatched(state.last_seq)))


def last_watched(home: Home, session: str) -> int:
    """Return the number of the last event that the person saw; 0 if the person never watched the session."""
    try:
        return msgspec.json.decode(_file(home, session).read_bytes(), type=LastWatched).seq
    except (OSError, msgspec.DecodeError):
        return 0


def away_words(state: SessionState, seq: int) -> str:
    """Return `while you were away: 14 attempts, 2 new bests, 1 waits for you`; empty if nothing happened since `seq`."""
    attempts = [attempt for attempt in state.attempts() if attempt.judged_seq > seq]
    bests = sum(
        instance.best in {attempt.attempt for attempt in attempts} and instance.solved
        for instance in state.instances.values()
    )
    waiting = sum(attempt.waiting for attempt in state.attempts())
    waits = "not decided" if state.stopped else "waits for you" if waiting == 1 else "wait for you"
    parts = [
        counted(len(attempts), "attempt") if attempts else "",
        counted(bests, "new best") if bests else "",
        f"{waiting} {waits}" if waiting else "",
    ]
    return f"while you were away: {', '.join(filter(None, parts))}" if seq and attempts else ""


def _file(home: Home, session: str) -> Path:
    return home.files(session).folder / "last_watched.json"
