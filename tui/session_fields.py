"""The fields of a session by which `wavedeck sessions list --filter` and the cockpit's Home filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sessions.names import short_task

from .filters import Value

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
        "method": info.method,
        "model": info.model,
        "task": " ".join(map(short_task, info.tasks)),
        "solved": len(info.solved),
        "confirmed": None if info.confirmed is None else len(info.confirmed),
        "attempts": info.attempts,
        "speedup": max(info.speedups.values(), default=None),
        "cost": info.cost_usd,
        "tokens": info.input_tokens + info.output_tokens,
        "waiting": len(info.waiting),
    }
