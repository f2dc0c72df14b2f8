"""What an instance has achieved: its correct candidates, best last."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from harness import Evaluation
from sessions.metrics import Rank, rank

ANCESTORS = 5
"""GEAK's `ancestor_num`."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A correct candidate that later ones may be derived from."""

    attempt: str
    source: str
    strategy: str
    evaluation: Evaluation

    @property
    def rank(self) -> Rank:
        """Greater is better; where nothing was timed it goes by what is known (`sessions.metrics.rank`)."""
        return rank(self.evaluation)


class History:
    """At most `limit` ancestors in ascending order, best last.

    When full, a newcomer that beats the worst replaces the worst, so the best is never lost. Of equals the older ranks
    higher, and the same source is kept once: copies would crowd out the ideas that the optimizer should see.
    """

    def __init__(self, limit: int = ANCESTORS) -> None:
        self._limit = limit
        self._ancestors: list[Ancestor] = []

    def add(self, newcomer: Ancestor) -> bool:
        """Take a correct candidate in; whether it is now the best."""
        if any(newcomer.source == known.source for known in self._ancestors):
            return False
        place = bisect_left(self._ancestors, newcomer.rank, key=lambda ancestor: ancestor.rank)
        if len(self._ancestors) == self._limit:
            if place == 0:
                return False
            del self._ancestors[0]
            place -= 1
        self._ancestors.insert(place, newcomer)
        return self._ancestors[-1] is newcomer

    @property
    def best(self) -> Ancestor | None:
        """The best candidate so far; `None` while none is correct."""
        return self._ancestors[-1] if self._ancestors else None

    def __iter__(self) -> Iterator[Ancestor]:
        return iter(self._ancestors)

    def __len__(self) -> int:
        return len(self._ancestors)
