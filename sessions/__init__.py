"""The memory: the record of what happened in a session, kept so that no paid work is lost.

Every name is imported at first use. Most commands need the path of the home folder, but few need events or git, and the
cockpit must start without git.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .catalog import delete_session, find_session, journal_of, list_sessions
    from .errors import SessionsError
    from .home import Home, SessionFiles, home_from
    from .journal.journal import EventClock, Journal, JournalTail, read_journal
    from .recording import load_recording, write_recording
    from .state.folding import apply, fold
    from .state.state import AttemptState, InstanceState, SessionState
    from .store.reconcile import record_at_rest, resume
    from .store.recorder import Recorder
    from .store.store import Store

_NAMES = {
    "catalog": ("delete_session", "find_session", "journal_of", "list_sessions"),
    "errors": ("SessionsError",),
    "home": ("Home", "SessionFiles", "home_from"),
    "journal.journal": ("EventClock", "Journal", "JournalTail", "read_journal"),
    "recording": ("load_recording", "write_recording"),
    "state.folding": ("apply", "fold"),
    "state.state": ("AttemptState", "InstanceState", "SessionState"),
    "store.reconcile": ("record_at_rest", "resume"),
    "store.recorder": ("Recorder",),
    "store.store": ("Store",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "AttemptState",
    "EventClock",
    "Home",
    "InstanceState",
    "Journal",
    "JournalTail",
    "Recorder",
    "SessionFiles",
    "SessionState",
    "SessionsError",
    "Store",
    "apply",
    "delete_session",
    "find_session",
    "fold",
    "home_from",
    "journal_of",
    "list_sessions",
    "load_recording",
    "read_journal",
    "record_at_rest",
    "resume",
    "write_recording",
]


def __getattr__(name: str) -> object:
    """Import a name; `AttributeError` for an unknown name."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)
