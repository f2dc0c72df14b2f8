"""The best ever of each task over all sessions of a home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .catalog import session_state
from .errors import JournalNotReadable, StoreBroken
from .home import Home
from .listing.info import SessionInfo, Standing
from .state.bests import BestKey, MeasuredBest, best_key, measured_bests, order


@dataclass(frozen=True, slots=True)
class BestEver:
    """The fastest attempt of its task, provenance and baseline over all sessions."""

    session: str
    measured: MeasuredBest


def bests_ever(home: Home, newest_first: Sequence[SessionInfo]) -> list[BestEver]:
    """Returns the best of each task, provenance and baseline over listed sessions: tasks by name, best first.

    Reads summaries, and the journal of a session with a summary of an older version. A damaged session counts if its
    journal can be read.
    """
    bests: dict[BestKey, BestEver] = {}
    for info in reversed(newest_first):
        for measured in _bests(home, info):
            before = bests.get(best_key(measured))
            if before is None or order(measured) > order(before.measured):
                bests[best_key(measured)] = BestEver(info.name, measured)
    best_first = sorted(bests.values(), key=lambda best: order(best.measured), reverse=True)
    return sorted(best_first, key=lambda best: best.measured.task)


def _bests(home: Home, info: SessionInfo) -> Sequence[MeasuredBest]:
    if info.bests is not None:
        return info.bests
    try:
        return measured_bests(session_state(home, info.name))
    except (StoreBroken, JournalNotReadable):
        if info.state is not Standing.DAMAGED:
            raise
        return ()
