"""Recorded calls of timing baselines: each is recorded once, and played in every timing against the same baseline."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from harness.wire.messages.clock import BASELINE, Measure
from harness.wire.messages.timer import TapedCall

MOST = 64
"""Baselines kept; the least recently used goes first."""


class BaselineCalls:
    """The calls that the timings of one pool recorded."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, dict[str, TapedCall]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no baseline was recorded yet."""
        return not self._kept

    def find(self, measure: Measure) -> dict[str, TapedCall]:
        """Return the calls for such a timing by case; empty if none are kept."""
        key = _key(measure)
        calls = self._kept.pop(key, {})
        if calls:
            self._kept[key] = calls  # the newest is last
        return calls

    def keep(self, measure: Measure, calls: Mapping[str, TapedCall]) -> None:
        """Keep the calls that a timing recorded."""
        self._kept[_key(measure)] = dict(calls)
        while len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]


def _key(measure: Measure) -> Hashable:
    cases = tuple(
        (case.name, case.dtype, tuple(sorted(case.gpu.items()))) for case in measure.task.open_cases
    )
    return measure.task.folder, measure.sources[BASELINE], measure.target, measure.seed, cases
