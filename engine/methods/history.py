"""The history of an instance: its correct candidates, from which later ones are derived, best last."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator

from engine.prompting.judged import JudgedCandidate

ANCESTORS = 5
"""GEAK's `ancestor_num`."""


class History:
    """At most `limit` ancestors in ascending order, best last.

    When the history is full, a newcomer replaces the worst entry if it is better, so the best is never lost. Of equal
    entries the older ranks higher. Each source is kept once: copies would leave fewer ideas for the optimizer.
    """

    def __init__(self, limit: int = ANCESTORS) -> None:
        self._limit = limit
        self._ancestors: list[JudgedCandidate] = []

    def add(self, newcomer: JudgedCandidate) -> bool:
        """Add a correct candidate; returns True if it is now the best."""
        if any(newcomer.source == ancestor.source for ancestor in self._ancestors):
            return False
        place = bisect_left(self._ancestors, newcomer.rank, key=lambda ancestor: ancestor.rank)
        if len(self._ancestors) == self._limit:
            if place == 0:
                return False
            del self._ancestors[0]
            place -= 1
        self._ancestors.insert(place, newcomer)
        return self._ancestors[-1] is newcomer

    def drop(self, attempts: Collection[str]) -> None:
        """Remove attempts that a person banned."""
        self._ancestors = [ancestor for ancestor in self._ancestors if ancestor.attempt not in attempts]

    @property
    def best(self) -> JudgedCandidate | None:
        """The best candidate so far; `None` if none is correct."""
        return self._ancestors[-1] if self._ancestors else None

    def __iter__(self) -> Iterator[JudgedCandidate]:
        return iter(self._ancestors)

    def __len__(self) -> int:
        return len(self._ancestors)


def up_to(base: JudgedCandidate, ancestors: Iterable[JudgedCandidate]) -> list[JudgedCandidate]:
    """Returns the ancestors that rank below `base`, then `base`: a history of which `base` is the best."""
    below = [each for each in ancestors if each.rank < base.rank and each.source != base.source]
    return [*below, base]
