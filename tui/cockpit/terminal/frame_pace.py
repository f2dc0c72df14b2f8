"""How often the cockpit draws a frame, where a terminal takes them slowly."""

from __future__ import annotations

SLOWEST_S = 1.0
LATE_S = 0.05
"""A frame this late means that something holds the loop: mostly a terminal that cannot take more."""
QUEUED = 2
"""Writes that wait for the terminal; a few more and Textual's writer blocks the loop (measured with 8.2.8)."""
RECOVER = 0.9


class Governor:
    """Doubles the time between frames when they pile up, and comes back slowly."""

    def __init__(self, period_s: float) -> None:
        self._wanted_s = period_s
        self.period_s = period_s
        self._due: float | None = None

    def want(self, period_s: float) -> None:
        """Another screen wants another pace; being held back lasts."""
        held_back = self.period_s / self._wanted_s
        self._wanted_s = period_s
        self.period_s = min(SLOWEST_S, period_s * held_back)

    def due(self, now: float) -> bool:
        """Whether it is time for a frame."""
        return self._due is None or now >= self._due

    def drew(self, now: float, *, queued: int) -> None:
        """A frame was made; `queued` writes wait for the terminal."""
        late = 0.0 if self._due is None else now - self._due
        if queued > QUEUED or late > LATE_S + self.period_s:
            self.period_s = min(SLOWEST_S, self.period_s * 2)
        else:
            self.period_s = max(self._wanted_s, self.period_s * RECOVER)
        self._due = now + self.period_s
