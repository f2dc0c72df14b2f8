"""The settings of a run in words: its method with options, and its timing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from sessions.names import short_task
from sessions.settings import MethodOptions, RunSettings

DEFAULTS = MethodOptions()
REFERENCE_SHOWN = "prompts showed it where the benchmark hides it, so results are not the benchmark's score"
SWITCHES = {"show_reference": "reference shown"}
"""Switches that have other words than their names."""


def option_words(options: MethodOptions) -> str:
    """Return the options that differ from the defaults: `without knowledge, one-shot; tune; workers 2`."""
    words = []
    for name, value in msgspec.structs.asdict(options).items():
        if value == getattr(DEFAULTS, name) or name == "agent":  # the session's model names the agent
            continue
        if isinstance(value, tuple):
            words.append(f"{name} {', '.join(value)}")
        elif value is True or name == "predictions":  # a digest says nothing
            words.append(SWITCHES.get(name, name))
        else:
            words.append(f"{name} {Path(value).name if name in ('start', 'corpus') else value}")
    return "; ".join(words)


def method_words(method: str, options: MethodOptions) -> str:
    """Return the method with its changed options: `geak (without optimizer)`."""
    words = option_words(options)
    return f"{method} ({words})" if words else method


def timing_words(started: RunSettings) -> str:
    """Return `timed against eager`; empty with the default timing."""
    return f"timed against {started.against}" if started.against else ""


def task_words(tasks: Sequence[str], most: int = 4) -> str:
    """Return the names of at most so many tasks: `softmax, rope and 18 more`."""
    more = f" and {len(tasks) - most} more" if len(tasks) > most else ""
    return (", ".join(map(short_task, tasks[:most])) or "no task") + more
