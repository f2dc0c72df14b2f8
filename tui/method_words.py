"""How a session's method is said, with what it was told beside counts."""

from __future__ import annotations

import msgspec

from sessions.events import MethodOptions

USUAL = MethodOptions()


def option_words(options: MethodOptions) -> str:
    """The options that differ from the usual ones, `without knowledge, one-shot; tune; workers 2`; empty where none does."""
    told = []
    for name, value in msgspec.structs.asdict(options).items():
        if value == getattr(USUAL, name):
            continue
        if isinstance(value, tuple):
            told.append(f"{name} {', '.join(value)}")
        else:
            told.append(name if value is True else f"{name} {value}")
    return "; ".join(told)


def method_words(method: str, options: MethodOptions) -> str:
    """The method with those: `geak (without optimizer)`."""
    said = option_words(options)
    return f"{method} ({said})" if said else method
