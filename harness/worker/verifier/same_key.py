"""
Constants by which Triton cannot tell two launches apart: on a device the second runs what was compiled for the first.

Its cache in a process is a dict of what launches are specialised for (`compute_cache_key` in triton/runtime/jit.py, 3.7.1), and 1, 1.0 and
True, as 0.0 and -0.0, are one key of a dict; and so a global constant that changes between them counts as unchanged.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from harness.worker.serving.records import Constexpr, Function, FunctionNotes, Items, Launch, Value, View


class _Known(NamedTuple):
    exact: Hashable
    value: Value


class LaunchKeys:
    """Which constants each kernel of one candidate has been launched with."""

    def __init__(self) -> None:
        self._launched: dict[Hashable, _Known] = {}

    def mixes(self, launch: Launch, functions: Iterable[FunctionNotes]) -> str | None:
        """Why a device would run another launch's code for this one; `None` where it would not."""
        notes = {one.function: one for one in functions}
        own = notes.get(launch.kernel)
        constants = own.constexprs if own is not None else ()
        others = tuple(
            (name, _kind(value)) for name, value in launch.arguments.items() if name not in constants
        )
        given = {name: value for name, value in launch.arguments.items() if name in constants}
        place = (launch.kernel, others, tuple((name, _alike(value)) for name, value in given.items()))
        for name, value in given.items():
            found = self._differs((place, name), value)
            if found is not None:
                return _told(launch.kernel, name, found, value)
        for function, one in notes.items():
            for name, value in one.names.items():
                found = self._differs((function, name, _alike(value)), value)
                if found is not None:
                    return _told(function, name, found, value)
        return None

    def _differs(self, key: Hashable, value: Value) -> Value:
        """What stood under the key and is another one, though equal; `None` otherwise."""
        exact = _exact(value)
        known = self._launched.setdefault(key, _Known(exact, value))
        return known.value if known.exact != exact else None


def _told(function: Function, name: str, before: Value, now: Value) -> str:
    return (
        f"`{function.name}` has `{name}` = {_bare(now)!r} after {_bare(before)!r}: Triton takes the two for one and runs the code compiled for the "
        "first; use one type and one sign of zero"
    )


def _bare(value: Value) -> Value:
    return _bare(value.value) if isinstance(value, Constexpr) else value


def _alike(value: Value) -> Hashable:
    """Equal where Triton finds two constants equal, or prints them alike."""
    match value:
        case Constexpr(value=inner):
            return _alike(inner)
        case Items(items=items):
            return tuple(map(_alike, items))
        case float() if math.isnan(value):
            return "nan"
        case int() | float():
            return value
        case _:
            return repr(value)


def _exact(value: Value) -> Hashable:
    """Equal where two constants are of one type and one bit pattern."""
    match value:
        case Constexpr(value=inner):
            return _exact(inner)
        case Items(items=items):
            return tuple(map(_exact, items))
        case float():
            return struct.pack("<d", value)
        case _:
            return type(value).__name__, repr(value)


def _kind(value: Value) -> Hashable:
    """What of an argument that is no constant Triton certainly goes by: its type."""
    match value:
        case View(dtype=dtype):
            return dtype
        case Items(items=items):
            return tuple(map(_kind, items))
        case _:
            return type(value).__name__
