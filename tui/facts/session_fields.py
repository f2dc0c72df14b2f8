"""The fields of a session by which `wavedeck sessions list --filter` and the cockpit's Home filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sessions.names import short_task
from sessions.state.speed import Speed

from .filters import Value
from .vocabulary import UNKNOWN

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo

SESSION_FIELDS = frozenset(
    {
        "name",
        "title",
        "state",
        "method",
        "model",
        "task",
        "solved",
        "confirmed",
        "attempts",
        "speedup",
        "cost",
        "tokens",
        "waiting",
    }
)
"""Keys of `session_fields`."""


def session_fields(info: SessionInfo) -> Mapping[str, Value]:
    """Return the values to filter by; `speedup` is the best speedup of its tasks, `cost` is in USD.

    Unknown values are `None`: a session without an exam has no `confirmed`.
    """
    return {
        "name": info.name,
        "title": info.title,
        "state": str(info.state),
        "method": info.settings.method,
        "model": info.settings.model,
        "task": " ".join(map(short_task, info.settings.tasks)),
        "solved": len(info.solved),
        "confirmed": None if info.confirmed is None else len(info.confirmed),
        "attempts": info.attempts,
        "speedup": best.value if (best := fastest(info)[1]) is not None else None,
        "cost": info.cost_usd,
        "tokens": info.input_tokens + info.output_tokens,
        "waiting": len(info.waiting),
    }


def best_words(info: SessionInfo) -> str:
    """Return the best measured speedup with its task: `1.84x softmax`; `-` if none was measured."""
    task, best = fastest(info)
    return UNKNOWN if best is None else f"{best.figure} {short_task(task)}"


def fastest(info: SessionInfo) -> tuple[str, Speed | None]:
    """Return the task with the best measured speed of the session, and this speed; `("", None)` if none was measured."""
    task = max(info.speeds, key=lambda name: info.speeds[name].value, default="")
    return task, info.speeds.get(task)
