"""The memory: the record of what happened in a session, kept so that no paid work is lost.

Names from modules that need git are imported at first use, because the cockpit must start without git.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .codec import BadLine, Skipped, UnknownEvent
from .errors import SessionsError
from .fold import apply, device_key, fold
from .home import EngineInfo, Home, LiveFiles, home_from
from .journal import Clock, Journal, JournalTail, JournalWriter, open_journal, read_journal
from .ranking import Rank, rank
from .recording import Recording, load_recording, write_recording
from .state import AttemptState, CallState, Decision, DeviceState, InstanceState, SessionState

if TYPE_CHECKING:
    from .catalog import SessionInfo, Standing, delete_session, find_session, journal_of, list_sessions
    from .decisions import decide, undo
    from .reconcile import resume
    from .recorder import Recorder, check_decision
    from .store import Store

_NEED_GIT = {
    "Recorder": "recorder",
    "SessionInfo": "catalog",
    "Standing": "catalog",
    "Store": "store",
    "check_decision": "recorder",
    "decide": "decisions",
    "delete_session": "catalog",
    "find_session": "catalog",
    "journal_of": "catalog",
    "list_sessions": "catalog",
    "resume": "reconcile",
    "undo": "decisions",
}

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
    "undo",
    "write_recording",
]


def __getattr__(name: str) -> object:
    """Import a name that needs git; `AttributeError` for an unknown name."""
    module = _NEED_GIT.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)
