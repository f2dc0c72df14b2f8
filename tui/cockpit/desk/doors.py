"""Where a cockpit's data come from."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from engine.keys import environment_with_keys
from sessions.home import Home
from tui.cockpit.data.replays import Story, open_story
from tui.cockpit.data.sources import PORTION_BYTES, EventSource, LiveTail
from tui.facts.node_facts import NodeFacts, read_node

if TYPE_CHECKING:
    from engine.models.spec import ModelSpec
    from engine.plan.request import RunPlan
    from engine.process.launch import EngineStart
    from sessions.catalog import SessionInfo, SessionList
    from suites.own.draft import Draft
    from suites.own.request import KernelRequest
    from tui.cockpit.data.previews import Details


class Doors:
    """Reads a home, and starts engines in it; tests put their own functions in.

    What reads, starts or asks runs in a thread. git and models are loaded where they are needed, not before.
    """

    clock = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def __init__(self, home: Home, engine: EngineStart | None = None) -> None:
        """`engine` is the start of the session's engine, if it has only begun."""
        self.home = home
        self._engine = engine

    @cached_property
    def _sessions(self) -> SessionList:
        from sessions.catalog import SessionList

        return SessionList(self.home)

    def list_sessions(self) -> Sequence[SessionInfo]:
        """Read the list of sessions."""
        return self._sessions.read()

    def list_mark(self) -> object:
        """Return what changes when the list of sessions does; cheap."""
        return self._sessions.mark()

    def load_story(self, session: str, most_bytes: int | None = None) -> Story:
        """Read a session, or about so many bytes of its beginning; without its marks."""
        from sessions.catalog import open_reader

        mark = self.home.session_mark(session)
        return open_story(session, open_reader(self.home, session), mark=mark, most_bytes=most_bytes)

    def load_beginning(self, session: str) -> Story | None:
        """Read the beginning of a session, or the whole if it is short."""
        return self.load_story(session, PORTION_BYTES)

    def mark(self, session: str) -> tuple[int, ...]:
        """Return what changes when a session gets events; cheap."""
        return self.home.session_mark(session)

    def is_live(self, session: str) -> bool:
        """True if a session runs, or the store does not have all of it."""
        files = self.home.files(session)
        return not files.stored and (files.journal.exists() or files.plan.exists())

    def open_live(self, session: str) -> EventSource:
        """Return the events of a session as they are written."""
        begun = self._engine if self._engine is not None and self._engine.session == session else None
        return LiveTail(self.home, session, engine=begun)

    def read_details(self, session: str) -> Details:
        """Read what Home shows of a session beside its line."""
        from tui.cockpit.data.previews import read_details

        return read_details(self.home, session)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment, with the keys of models."""
        return environment_with_keys()

    def read_node(self) -> NodeFacts:
        """Read GPUs and versions."""
        return read_node(self.environ)

    def start(self, run: RunPlan) -> str:
        """Start the engine of a run; returns the session's name."""
        from engine.process.launch import start

        return start(run, self.home)

    def resume(self, session: str) -> None:
        """Start an engine that goes on with a session."""
        from engine.process.launch import resume

        resume(self.home, session)

    def unreachable(self, model: ModelSpec, environ: Mapping[str, str]) -> str:
        """Ask the server of a model; returns why it does not answer, empty if it does."""
        from engine.models.reaching import unreachable_because

        return unreachable_because(model, environ)

    def draft(self, request: KernelRequest) -> Draft:
        """Return the draft of a task for a kernel file; calls the kernel once."""
        from tui.actions.own_kernels import draft_of

        return draft_of(request)
