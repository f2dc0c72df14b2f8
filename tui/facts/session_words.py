"""Words for a session: its method with options, and why it or an instance ended."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sessions.events import EndReason
from sessions.names import short_task
from sessions.settings import MethodOptions
from sessions.state.state import SessionState

ENDINGS: dict[str, str] = {
    EndReason.ITERATIONS: "all iterations spent",
    EndReason.SOLVED: "solved; the method does not look for a faster kernel",
    EndReason.ANSWERED: "answered; the method asks only once",
    EndReason.NOTHING_LEFT: "no variant left to judge",
    EndReason.START_FAILED: "the kernel to start from is not correct",
    EndReason.SPEEDUP_REACHED: "the wanted speedup is reached",
    EndReason.AT_ROOF: "at the practical roof of the device",
    EndReason.NO_GAIN: "no gain any more",
    EndReason.EDITED: "a person's edit was judged",
    EndReason.RETIRED: "retired by a person",
    EndReason.HOPELESS: "no attempt of the task is correct; its iterations go to other tasks",
    EndReason.RECORDING_EXHAUSTED: "the recording ended",
    EndReason.BUDGET: "budget spent",
    EndReason.MODEL_FAILED: "the model failed",
    EndReason.INFRA_ERROR: "our own failure",
}


def ending_words(reason: str) -> str:
    """Return the words of a reason; an unknown reason (from a newer version) as it is."""
    return ENDINGS.get(reason, reason)


def session_ending(state: SessionState) -> str:
    """Return `finished`, `stopped (reason)` or `not finished`, from the events."""
    if state.finished:
        return "finished"
    return f"stopped ({state.stopped})" if state.stopped else "not finished"


DEFAULTS = MethodOptions()


def option_words(options: MethodOptions) -> str:
    """Return the options that differ from the defaults: `without knowledge, one-shot; tune; workers 2`."""
    words = []
    for name, value in msgspec.structs.asdict(options).items():
        if value == getattr(DEFAULTS, name):
            continue
        if isinstance(value, tuple):
            words.append(f"{name} {', '.join(value)}")
        else:
            words.append(name if value is True else f"{name} {value}")
    return "; ".join(words)


def method_words(method: str, options: MethodOptions) -> str:
    """Return the method with its changed options: `geak (without optimizer)`."""
    words = option_words(options)
    return f"{method} ({words})" if words else method


def task_words(tasks: Sequence[str], most: int = 4) -> str:
    """Return the names of at most so many tasks: `softmax, rope and 18 more`."""
    more = f" and {len(tasks) - most} more" if len(tasks) > most else ""
    return (", ".join(map(short_task, tasks[:most])) or "no task") + more
