"""The decisions that were sent from one Review screen: when the session has them, and which can be taken back."""

from __future__ import annotations

from collections.abc import Sequence

from tui.cockpit.review_queue import Entry


class SentDecisions:
    """Knows the decisions of this screen from those of other people and other screens."""

    def __init__(self) -> None:
        self._sent: dict[str, int] = {}
        """Attempts with a decision on its way, with the number of the last event before it."""
        self._made: list[str] = []
        """Attempts that were decided here, the latest last."""

    def send(self, attempt: str, last_seq: int) -> None:
        """Note that a decision goes out; `last_seq` is the number of the last event before it."""
        self._sent[attempt] = last_seq

    def arrived(self, entries: Sequence[Entry], last_seq: int, me: str) -> list[str]:
        """Return the attempts with a decision by `me` that the session has now; each is returned once.

        A decision by another person ends the wait, too: the engine refused ours, or theirs came later.
        """
        arrived: list[str] = []
        for entry in entries:
            decision = entry.attempt.decision
            before = self._sent.get(entry.key)
            if before is None or decision is None or last_seq <= before:
                continue
            del self._sent[entry.key]
            if decision.by == me:
                arrived.append(entry.key)
        self._made += arrived
        return arrived

    @property
    def pending(self) -> bool:
        """True while a decision is on its way."""
        return bool(self._sent)

    def undoable(self, entries: Sequence[Entry], cursor: Entry | None) -> str | None:
        """Return the decided attempt under the cursor, else the latest that was decided here; `None` without one."""
        if cursor is not None and cursor.attempt.decision is not None:
            return cursor.key
        decided = {entry.key for entry in entries if entry.attempt.decision is not None}
        return next((key for key in reversed(self._made) if key in decided), None)

    def undo(self, attempt: str) -> None:
        """Forget a decision that is taken back."""
        self._made = [made for made in self._made if made != attempt]
