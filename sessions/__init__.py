"""The memory: the record of what happened in a session, kept so that no paid work is lost.

Every name is imported at first use. Most commands need the path of the home folder, but few need events or git, and the
cockpit must start without git.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .catalog import SessionInfo, Standing, delete_session, find_session, journal_of, list_sessions
    from .engine_info import EngineInfo
    from .errors import SessionsError
    from .home import Home, LiveFiles, home_from
    from .journal.codec import BadLine, Skipped, UnknownEvent
    from .journal.journal import Clock, Journal, JournalTail, JournalWriter, open_journal, read_journal
    from .recording import Recording, load_recording, write_recording
    from .state.folding import apply, device_key, fold
    from .state.ranking import Rank, rank
    from .state.state import AttemptState, CallState, Decision, DeviceState, InstanceState, SessionState
    from .store.decidable import check_decision
    from .store.reconcile import decide, resume
    from .store.recorder import Recorder
    from .store.store import Store

_NAMES = {
    "catalog": ("SessionInfo", "Standing", "delete_session", "find_session", "journal_of", "list_sessions"),
    "engine_info": ("EngineInfo",),
    "errors": ("SessionsError",),
    "home": ("Home", "LiveFiles", "home_from"),
    "journal.codec": ("BadLine", "Skipped", "UnknownEvent"),
    "journal.journal": ("Clock", "Journal", "JournalTail", "JournalWriter", "open_journal", "read_journal"),
    "recording": ("Recording", "load_recording", "write_recording"),
    "state.folding": ("apply", "device_key", "fold"),
    "state.ranking": ("Rank", "rank"),
    "state.state": ("AttemptState", "CallState", "Decision", "DeviceState", "InstanceState", "SessionState"),
    "store.decidable": ("check_decision",),
    "store.reconcile": ("decide", "resume"),
    "store.recorder": ("Recorder",),
    "store.store": ("Store",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "AttemptState",
    "BadLine",
    "CallState",
    "Clock",
    "Decision",
    "DeviceState",
    "EngineInfo",
    "Home",
    "InstanceState",
    "Journal",
    "JournalTail",
    "JournalWriter",
    "LiveFiles",
    "Rank",
    "Recorder",
    "Recording",
    "SessionInfo",
    "SessionState",
    "SessionsError",
    "Skipped",
    "Standing",
    "Store",
    "UnknownEvent",
    "apply",
    "check_decision",
    "decide",
    "delete_session",
    "device_key",
    "find_session",
    "fold",
    "home_from",
    "journal_of",
    "list_sessions",
    "load_recording",
    "open_journal",
    "rank",
    "read_journal",
    "resume",
    "write_recording",
]


def __getattr__(name: str) -> object:
    """Import a name; `AttributeError` for an unknown name."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)
