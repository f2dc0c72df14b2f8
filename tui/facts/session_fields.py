"""The fields of a session by which `wavedeck sessions list --filter` and the cockpit's Home filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from sessions.names import short_task
from sessions.state.speed import Speed, fastest_first
from sessions.state.state import known_sum

from .filters import Value
from .vocabulary import UNKNOWN

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo

_FIELDS: dict[str, Callable[[SessionInfo], Value]] = {
    "name": lambda info: info.name,
    "title": lambda info: info.title,
    "state": lambda info: str(info.state),
    "method": lambda info: info.settings.method,
    "model": lambda info: info.settings.model,
    "task": lambda info: " ".join(map(short_task, info.settings.tasks)),
    "solved": lambda info: len(info.solved),
    "confirmed": lambda info: None if info.confirmed is None else len(info.confirmed),
    "attempts": lambda info: info.attempts,
    "speedup": lambda info: None if (best := fastest([info])[1]) is None else best.value,
    "cost": lambda info: info.cost_usd,
    "tokens": lambda info: known_sum([info.input_tokens, info.output_tokens]),
    "waiting": lambda info: len(info.waiting),
}
SESSION_FIELDS = frozenset(_FIELDS)


def session_fields(info: SessionInfo) -> Mapping[str, Value]:
    """Return the values to filter by; `speedup` is the best speedup of its tasks, `cost` is in USD.

    Unknown values are `None`: a session without an exam has no `confirmed`.
    """
    return {name: value(info) for name, value in _FIELDS.items()}


def best_words(info: SessionInfo) -> str:
    """Return the best measured speedup with its task: `1.84x softmax`; `-` if none was measured."""
    task, best = fastest([info])
    return UNKNOWN if best is None else f"{best.figure} {short_task(task)}"


def fastest(infos: Iterable[SessionInfo]) -> tuple[str, Speed | None]:
    """Return the task with the best measured speed of sessions, and this speed; `("", None)` if none was measured."""
    speeds = (pair for info in infos for pair in info.speeds.items())
    return next(iter(fastest_first(speeds, lambda pair: pair[1])), ("", None))
