"""How many attempts were judged: one definition for all surfaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness import Verdict

from .state import AttemptState

UNCOUNTED = tuple(verdict for verdict in Verdict if not verdict.counted)


class Tally(NamedTuple):
    """Numbers of judged attempts."""

    judged: int
    """Attempts with a verdict that counts."""
    correct: int
    uncounted: int
    """Attempts whose verdict counts nowhere: unsupported, cancelled, failure of Wavedeck."""

    @property
    def share_correct(self) -> float | None:
        """Share of the judged attempts that is correct, 0 to 1; `None` without any."""
        return self.correct / self.judged if self.judged else None


def tally(attempts: Iterable[AttemptState]) -> Tally:
    """Returns the numbers of judged attempts."""
    verdicts = [attempt.verdict for attempt in attempts if attempt.verdict is not None]
    uncounted = sum(map(verdicts.count, UNCOUNTED))
    return Tally(len(verdicts) - uncounted, verdicts.count(Verdict.CORRECT), uncounted)
