"""Facts of all sessions of a home that a review needs: accepted kernels and bests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessions.errors import SessionsError
from sessions.home import Home
from sessions.state.bests import BestKey, best_key

if TYPE_CHECKING:
    from sessions.best_ever import BestEver
    from sessions.store.store import AcceptedKernel


@dataclass(frozen=True, slots=True)
class Archive:
    """Accepted kernels and best attempts over all sessions of a home."""

    accepted: Mapping[str, AcceptedKernel] = field(default_factory=dict)
    """Kernels on the store's branch `accepted`, by full task name."""
    bests: Sequence[BestEver] = ()

    def best(self, wanted: BestKey) -> BestEver | None:
        """Return the best attempt of a task, provenance and baseline; `None` if none was measured."""
        return next((best for best in self.bests if best_key(best.measured) == wanted), None)


def read_archive(home: Home) -> Archive | None:
    """Return the accepted kernels and the bests; `None` if the store cannot be read. Loads git: call it in a thread."""
    from sessions.best_ever import bests_ever
    from sessions.catalog import list_sessions
    from sessions.store.store import Store

    if not home.store.exists():
        return Archive()
    try:
        with Store.read_only(home.store) as store:
            return Archive(store.accepted(), bests_ever(list_sessions(home)))
    except (OSError, SessionsError):
        return None
