"""The session that a command is about, opened from the home."""

from __future__ import annotations

import os
from typing import NamedTuple

from sessions import Journal, SessionState, fold
from sessions.catalog import find_session, journal_of
from sessions.home import Home, home_from


class OpenedSession(NamedTuple):
    """A session of the home; its events are read at each use."""

    home: Home
    name: str
    """Its full name."""

    @property
    def journal(self) -> Journal:
        """Its events so far."""
        return journal_of(self.home, self.name)

    @property
    def state(self) -> SessionState:
        """Its state after these events."""
        return fold(self.journal.events)


def open_session(wanted: str) -> OpenedSession:
    """Return the session that a person names; raises as `find_session`."""
    home = home_from(os.environ)
    return OpenedSession(home, find_session(home, wanted))
