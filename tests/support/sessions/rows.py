"""Rows of judged attempts, made up for tests of metrics."""

from __future__ import annotations

from typing import Any

from harness import Verdict
from sessions.metrics.attempt_row import AttemptRow
from sessions.state.speed import Speed
from sessions.state.state import Confirmation


def row(
    task: str = "starter/softmax",
    instance: int = 1,
    number: int = 1,
    *,
    verdict: Verdict = Verdict.CORRECT,
    speedup: float | None = None,
    **fields: Any,
) -> AttemptRow:
    """Return a row; `speedup` is its speedup by each definition, and its rank among correct rows."""
    correct = verdict is Verdict.CORRECT
    values: dict[str, Any] = {
        "session": "s",
        "method": "geak",
        "model": "m",
        "seed": 1,
        "attempt": f"{task}#{instance}/{number}",
        "origin": "fresh",
        "independent": True,
        "call": verdict in (Verdict.CORRECT, Verdict.WRONG),
        "confirmation": Confirmation.NOT_EXAMINED,
        "place": (2.0 if correct else 0.0, speedup or 0.0),
        "speed": None if speedup is None else Speed(speedup),
        "found": speedup,
        "geak": speedup,
        "sum_ratio": speedup,
    }
    return AttemptRow(task=task, instance=instance, number=number, verdict=verdict, **values | fields)
