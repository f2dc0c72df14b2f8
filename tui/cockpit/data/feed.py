"""One source, one state: what every screen of a session draws from."""

from __future__ import annotations

from sessions.events import ReplyPiece
from sessions.state.folding import apply
from sessions.state.state import SessionState
from tui.cockpit.data.replays import Replay
from tui.cockpit.data.sources import EventSource, LiveTail
from tui.diagnostics import program
from tui.facts.instance import FactsCache

EVERYTHING = "*"
"""Dirty key that stands for all of them."""


class Feed:
    """Takes what is due from a source and folds it. Nobody else changes the state."""

    def __init__(self, source: EventSource) -> None:
        self.source = source
        self.state = SessionState()
        self.facts = FactsCache()
        """Facts of the instances, as the state has them."""
        self._seen_wall: float | None = None
        """When the engine was last seen to run, in seconds since the epoch."""

    @property
    def session(self) -> str:
        """The session's name."""
        return self.source.session

    @property
    def replay(self) -> Replay | None:
        """The replay, when this is one."""
        return self.source if isinstance(self.source, Replay) else None

    @property
    def live(self) -> LiveTail | None:
        """The live tail, when this is one."""
        return self.source if isinstance(self.source, LiveTail) else None

    def drain(self, now: float, wall: float | None = None) -> frozenset[str]:
        """Fold what is due by `now` (monotonic seconds, `wall` since the epoch); returns the keys of what changed."""
        batch = self.source.take(now)
        if self.live is not None and self.live.health.running:
            self._seen_wall = wall
        if batch.state is not None:
            self.state = batch.state
            self.facts = FactsCache()
            return frozenset((EVERYTHING,))
        dirty: set[str] = set()
        self.state.journal = batch.journal
        for event in batch.events:
            keys = apply(self.state, event)
            if isinstance(event, ReplyPiece):
                for key in keys:
                    self.facts.hear(key)
            else:
                self.facts.forget(keys)
            dirty |= keys
        if self.abandoned != self.facts.is_abandoned:
            self.facts = FactsCache(is_abandoned=self.abandoned)
            dirty.add(EVERYTHING)
        return frozenset(dirty)

    @property
    def abandoned(self) -> bool:
        """Whether a live session has no engine, and all that one wrote is folded."""
        live = self.live
        return live is not None and not live.health.running and not live.behind and not self.state.finished

    @property
    def is_unstored(self) -> bool:
        """Whether the session is finished, but no engine moves it to the store."""
        return self.state.finished and self.live is not None and self.live.health.is_left

    @property
    def is_over(self) -> bool:
        """Whether no engine works on the session: it is finished, stopped or abandoned."""
        return self.state.finished or self.state.stopped is not None or self.abandoned

    @property
    def end_wall(self) -> float | None:
        """When the work on a session ended: at its last event, or later if its engine was seen to run until it was killed."""
        last = self.state.last_wall
        if self._seen_wall is None or last is None or self.state.finished or self.state.stopped is not None:
            return last
        return max(last, self._seen_wall)

    def trouble(self) -> str:
        """What the person must know about the engine behind a live session; one line, or nothing."""
        live = self.live
        if live is None:
            return ""
        if live.health.error:
            return live.health.error
        resume = f"r at Home, or {program()} resume {self.session}"
        if self.is_unstored:
            return f"Finished, but not in the store. Move it there: {resume}"
        if not self.abandoned:
            return ""
        if self.state.stopped is not None:
            return f"Stopped. Go on: {resume}"
        return f"The engine is gone. Go on: {resume}"
