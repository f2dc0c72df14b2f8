"""Protects batches of calls: parts so short that the host stays ahead, and the mean over all calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.worker.kit import call_series
from harness.worker.kit.call_series import CallBatch


class FakeStopwatch:
    """Runs calls; each part takes as many milliseconds as it has calls."""

    def __init__(self, made: list[int]) -> None:
        self.made = made
        self.leads_ms: list[float] = []
        self.parts: list[list[int]] = []

    def leads_by(self, host_ms: float) -> None:
        self.leads_ms.append(host_ms)

    def sample(self, call: Callable[[int], Any], count: int, *, cold: bool) -> tuple[float, ...]:
        assert (count, cold) == (1, False)
        before = len(self.made)
        call(0)
        self.parts.append(self.made[before:])
        return (float(len(self.parts[-1])),)


@pytest.mark.parametrize(
    ("host_ms", "parts"),
    [(0.01, [[0, 1, 2, 3]]), (1.5, [[0, 1], [2, 3]]), (9.0, [[0], [1], [2], [3]])],
)
def test_batch_is_timed_in_parts_that_fit_the_queue(
    monkeypatch: pytest.MonkeyPatch, host_ms: float, parts: list[list[int]]
) -> None:
    monkeypatch.setattr(call_series, "host_ms", lambda _call: host_ms)
    made: list[int] = []
    batch = CallBatch(lambda number: made.append(number) or number, 4)  # type: ignore[func-returns-value]
    watch = FakeStopwatch(made)
    assert batch.sample(watch, 2, lambda: None) == (1.0, 1.0)  # type: ignore[arg-type]
    assert watch.parts == parts * 2
    assert watch.leads_ms[0] == host_ms * len(parts[0])
    assert batch.outputs == [0, 1, 2, 3]
