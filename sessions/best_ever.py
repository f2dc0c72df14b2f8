"""The best ever of a task over all sessions of a home."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .catalog import journal_of, list_sessions
from .errors import JournalNotReadable, StoreBroken
from .home import Home
from .state.bests import BestKey, MeasuredBest, best_key, measured_bests, order
from .state.folding import fold
from .state.info import SessionInfo, Standing


@dataclass(frozen=True, slots=True)
class BestEver:
    """The fastest attempt of its field over all sessions."""

    session: str
    measured: MeasuredBest


def best_of_each(sessions: Iterable[tuple[str, Iterable[MeasuredBest]]]) -> list[BestEver]:
    """Returns the best of each field over sessions given as (name, their bests): tasks by name, best first."""
    bests: dict[BestKey, BestEver] = {}
    for session, measured_attempts in sessions:
        for measured in measured_attempts:
            best = bests.get(best_key(measured))
            if best is None or order(measured) > order(best.measured):
                bests[best_key(measured)] = BestEver(session, measured)
    by_rank = sorted(bests.values(), key=lambda best: order(best.measured), reverse=True)
    return sorted(by_rank, key=lambda best: best.measured.task)


def bests_ever(home: Home) -> list[BestEver]:
    """Returns the best of each task, provenance and baseline over all sessions of the home; reads git.

    Reads summaries, and the journal of a session with a summary of an older version.
    """
    return bests_of(home, list_sessions(home))


def bests_of(home: Home, newest_first: Sequence[SessionInfo]) -> list[BestEver]:
    """Returns the same for sessions that were listed; a damaged session counts if its journal can be read."""
    return best_of_each((info.name, _measured(home, info)) for info in reversed(newest_first))


def _measured(home: Home, info: SessionInfo) -> Sequence[MeasuredBest]:
    if info.bests is not None:
        return info.bests
    try:
        return measured_bests(fold(journal_of(home, info.name).events))
    except (StoreBroken, JournalNotReadable):
        if info.state is not Standing.DAMAGED:
            raise
        return ()


def best_ever(home: Home, task: str, *, product: str = "", against: str | None = None) -> BestEver | None:
    """Returns the best attempt of a task (full name) over all sessions of the home; `None` if none was measured.

    `product` and `against` select a device product and a baseline; without them all fields count.
    """
    fitting = [
        best
        for best in bests_ever(home)
        if best.measured.task == task
        and product in ("", best.measured.product)
        and against in (None, best.measured.against)
    ]
    return next(iter(fitting), None)
