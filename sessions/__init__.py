"""The memory: the record of what happened in a session, kept so that no paid work is lost.

Every name is imported at first use. Most commands need the path of the home folder, but few need events or git, and the
cockpit must start without git.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .catalog import delete_session as delete_session
    from .catalog import find_session as find_session
    from .catalog import journal_of as journal_of
    from .catalog import list_sessions as list_sessions
    from .errors import SessionsError as SessionsError
    from .home import Home as Home
    from .home import SessionFiles as SessionFiles
    from .home import home_from as home_from
    from .journal.journal import EventClock as EventClock
    from .journal.journal import Journal as Journal
    from .journal.journal import JournalTail as JournalTail
    from .journal.journal import read_journal as read_journal
    from .recording import load_recording as load_recording
    from .recording import write_recording as write_recording
    from .state.folding import apply as apply
    from .state.folding import fold as fold
    from .state.state import AttemptState as AttemptState
    from .state.state import InstanceState as InstanceState
    from .state.state import SessionState as SessionState
    from .store.reconcile import record_at_rest as record_at_rest
    from .store.reconcile import resume as resume
    from .store.recorder import Recorder as Recorder
    from .store.store import Store as Store

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


def __getattr__(name: str) -> object:
    """Import a name; `AttributeError` for an unknown name."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)
