"""The memory: what happened in a session, kept so that nothing that was paid for is lost.

Names of modules that need git are loaded when they are first asked for: the cockpit starts without it.
"""

from .codec import BadLine, Skipped, UnknownEvent
from .errors import SessionsError
from .fold import apply, fold
from .home import EngineInfo, Home, LiveFiles, home_from
from .journal import Clock, Journal, JournalTail, JournalWriter, open_journal, read_journal
from .state import AttemptState, CallState, Decision, DeviceState, InstanceState, SessionState

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
    "SessionState",
    "SessionsError",
    "Skipped",
    "UnknownEvent",
    "apply",
    "fold",
    "home_from",
    "open_journal",
    "read_journal",
]
