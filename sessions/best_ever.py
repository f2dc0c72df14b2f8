"""The best ever of each task over all sessions of a home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .listing.info import SessionInfo
from .state.bests import BestKey, MeasuredBest, best_key, order


@dataclass(frozen=True, slots=True)
class BestEver:
    """The fastest attempt of its task, provenance and baseline over all sessions."""

    session: str
    measured: MeasuredBest


def bests_ever(newest_first: Sequence[SessionInfo]) -> list[BestEver]:
    """Returns the best of each task, provenance and baseline over listed sessions: tasks by name, best first."""
    bests: dict[BestKey, BestEver] = {}
    for info in reversed(newest_first):
        for measured in info.bests or ():
            before = bests.get(best_key(measured))
            if before is None or order(measured) > order(before.measured):
                bests[best_key(measured)] = BestEver(info.name, measured)
    best_first = sorted(bests.values(), key=lambda best: order(best.measured), reverse=True)
    return sorted(best_first, key=lambda best: best.measured.task)
