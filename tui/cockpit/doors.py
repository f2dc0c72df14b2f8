"""Where a cockpit's data come from."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sessions.home import Home
from tui.cockpit.replays import Story, read_story
from tui.cockpit.sources import LiveTail, Source

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo
    from sessions.events import AnyEvent


@dataclass(frozen=True, slots=True)
class Doors:
    """Where a cockpit's data come from; tests put their own in."""

    list_sessions: Callable[[], Sequence[SessionInfo]]
    load_story: Callable[[str], Story]
    """Reads a whole session; runs in a thread."""
    is_live: Callable[[str], bool]
    """Whether it has live files: it runs, or it ended without being put away."""
    open_live: Callable[[str], Source]
    mark: Callable[[str], tuple[int, ...]]
    """Changes when the store gets events of a session; cheap."""
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


def doors_of(home: Home) -> Doors:
    """The real ones. git is loaded when something is read from the store, not before."""

    def list_sessions() -> Sequence[SessionInfo]:
        from sessions.catalog import list_sessions as listed

        return listed(home)

    def stored(home: Home, session: str) -> Sequence[AnyEvent]:
        from sessions.catalog import journal_of

        return journal_of(home, session).events

    def load_story(session: str) -> Story:
        from sessions.catalog import journal_of

        mark = home.stored_mark(session)
        journal = journal_of(home, session)
        return read_story(session, [*journal.events, *journal.skipped], mark=mark)

    def is_live(session: str) -> bool:
        return home.live(session).folder.is_dir()

    return Doors(list_sessions, load_story, is_live, partial(LiveTail, home, stored=stored), home.stored_mark)
