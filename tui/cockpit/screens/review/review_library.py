"""Facts outside the session that a review needs: source of the baseline, accepted kernels, bests of all sessions.

All methods read files or git: call them in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sessions.errors import SessionsError
from sessions.home import Home
from sessions.settings import RunSettings
from sessions.state.bests import BestKey, best_key

if TYPE_CHECKING:
    from sessions.best_ever import BestEver


@dataclass(frozen=True, slots=True)
class Accepted:
    """The kernel of a task on the store's branch `accepted`."""

    session: str
    attempt: str


@dataclass(frozen=True, slots=True)
class Archive:
    """Accepted kernels and best attempts over all sessions of a home."""

    accepted: Mapping[str, Accepted] = field(default_factory=dict)
    """Kernels by full task name."""
    bests: Sequence[BestEver] = ()

    def best(self, wanted: BestKey) -> BestEver | None:
        """Return the best attempt of a task, device product and baseline; `None` if none was measured."""
        return next((best for best in self.bests if best_key(best.measured) == wanted), None)


class Library(Protocol):
    """Reads these facts; tests put their own in."""

    def baseline(self, started: RunSettings, task: str) -> str:
        """Return the source of the baseline of a task (full name); empty if it is not known."""
        ...

    def archive(self) -> Archive | None:
        """Return the facts about all sessions; `None` if they cannot be read."""
        ...


class HomeLibrary:
    """Reads the home's store and its suites."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def baseline(self, started: RunSettings, task: str) -> str:
        """Return the kernel file that `--against` named, else the task's own baseline as the suite has it now."""
        from tui.cockpit.data.sides import read_task_files

        baseline = read_task_files(started, task, self._home.suites).baseline
        return baseline.source if baseline is not None else ""

    def archive(self) -> Archive | None:
        """Return the accepted kernels and the bests; `None` if the store cannot be read. Loads git."""
        if not self._home.store.exists():
            return Archive()
        from sessions.best_ever import bests_ever
        from sessions.catalog import list_sessions
        from sessions.store.store import Store

        try:
            with Store.read_only(self._home.store) as store:
                kernels = store.accepted()
            bests = bests_ever(self._home, list_sessions(self._home))
        except (OSError, SessionsError):
            return None
        accepted = {task: Accepted(kernel.session, kernel.attempt) for task, kernel in kernels.items()}
        return Archive(accepted, bests)
