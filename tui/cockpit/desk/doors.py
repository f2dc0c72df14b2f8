"""Where a cockpit's data come from."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from engine.errors import UsageProblem
from engine.keys import environment_with_keys
from sessions.home import Home
from tui.cockpit.data.replays import Story, open_story
from tui.cockpit.data.sources import PORTION_BYTES, EventSource, LiveTail
from tui.facts.node_facts import NodeFacts, read_node

if TYPE_CHECKING:
    from engine.plan.request import RunPlan
    from engine.process.launch import EngineStart
    from sessions.catalog import SessionInfo, SessionList
    from tui.cockpit.data.previews import Details


def _no_beginning(session: str) -> None:
    """A session from memory needs none."""


def _no_details(_session: str) -> Details:
    from tui.cockpit.data.previews import Details

    return Details()


def _no_start(run: RunPlan) -> str:
    raise UsageProblem(f"no run of {run.method} can be started from here")


@dataclass(frozen=True, slots=True)
class Doors:
    """Where a cockpit's data come from; tests put their own in."""

    list_sessions: Callable[[], Sequence[SessionInfo]]
    load_story: Callable[[str], Story]
    """Reads a whole session, perhaps without its marks; runs in a thread."""
    is_live: Callable[[str], bool]
    """Whether it runs, or the store does not have all of it."""
    open_live: Callable[[str], EventSource]
    mark: Callable[[str], tuple[int, ...]]
    """Changes when a session gets events; cheap."""
    load_beginning: Callable[[str], Story | None] = _no_beginning
    """Reads the beginning of a session, or the whole if it is short; `None` if that does not pay. Runs in a thread."""
    list_mark: Callable[[], object] = tuple
    """Changes when the list of sessions does; cheap."""
    read_node: Callable[[], NodeFacts] = NodeFacts
    """Reads GPUs and versions; runs in a thread."""
    start: Callable[[RunPlan], str] = _no_start
    """Starts the engine of a run and returns the session's name; runs in a thread."""
    resume: Callable[[str], None] = _no_beginning
    """Starts an engine that goes on with a session; runs in a thread."""
    read_details: Callable[[str], Details] = _no_details
    """Reads what Home shows of a session beside its line; runs in a thread."""
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


def doors_of(home: Home, engine: EngineStart | None = None) -> Doors:
    """The real ones. git is loaded when something is read from the store, not before."""

    @cache
    def sessions() -> SessionList:
        from sessions.catalog import SessionList

        return SessionList(home)

    def load_story(session: str, most_bytes: int | None = None) -> Story:
        from sessions.catalog import open_reader

        mark = home.session_mark(session)
        return open_story(session, open_reader(home, session), mark=mark, most_bytes=most_bytes)

    def load_beginning(session: str) -> Story:
        return load_story(session, PORTION_BYTES)

    def is_live(session: str) -> bool:
        files = home.files(session)
        return not files.stored and (files.journal.exists() or files.plan.exists())

    def start(run: RunPlan) -> str:
        from engine.process.launch import start as started

        return started(run, home)

    def resume(session: str) -> None:
        from engine.process.launch import resume as resumed

        resumed(home, session)

    def read_details(session: str) -> Details:
        from tui.cockpit.data.previews import read_details as read

        return read(home, session)

    def open_live(session: str) -> EventSource:
        begun = engine if engine is not None and engine.session == session else None
        return LiveTail(home, session, engine=begun)

    return Doors(
        lambda: sessions().read(),
        load_story,
        is_live,
        open_live,
        home.session_mark,
        load_beginning=load_beginning,
        list_mark=lambda: sessions().mark(),
        read_node=lambda: read_node(environment_with_keys()),
        start=start,
        resume=resume,
        read_details=read_details,
    )
