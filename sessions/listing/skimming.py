"""Folds lines of a journal without the events that a reader does not need, one by one: a journal may be too long for memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sessions import events as ev
from sessions.journal.codec import tag_of
from sessions.journal.reader import JournalReader
from sessions.names import split_attempt
from sessions.state.folding import apply
from sessions.state.state import SessionState

Kinds = tuple[type[ev.Event], ...]

PASSING: Kinds = (ev.ReplyPiece, ev.StageStarted, ev.StageFinished, ev.DeviceSampled, ev.DeviceAwaited)
"""Events about one moment, and events with content that a later event repeats."""
DETAILS: Kinds = (
    *PASSING, ev.CallStarted, ev.CandidateProposed, ev.SweepStarted, ev.AttemptSwept, ev.SweepRung
)  # fmt: skip
"""Events that a summary does not need: nearly all events of a long journal."""
OF_ATTEMPTS: Kinds = (
    *DETAILS, ev.AttemptStarted, ev.CallRetried, ev.CallFinished, ev.CallFailed, ev.AttemptJudged, ev.AttemptCommitted,
    ev.WinnerExamined, ev.WinnerMeasured, ev.ProfileTaken,
)  # fmt: skip
"""Events that say something about one attempt only: nearly all bytes of a journal."""


def starts_of(kinds: Kinds) -> tuple[bytes, ...]:
    """Returns the starts of the lines of these kinds of events."""
    return tuple(b'{"type":"%s"' % tag_of(kind).encode() for kind in kinds)


class Skim(NamedTuple):
    """Which lines of a journal are folded."""

    without: tuple[bytes, ...]
    """Starts of lines that are left out."""
    except_with: tuple[bytes, ...] = ()
    """A line with one of these texts is folded in any case."""

    def needs(self, line: bytes) -> bool:
        """True if this line is folded."""
        return not line.startswith(self.without) or any(text in line for text in self.except_with)


SUMMARY = Skim(starts_of(DETAILS))
"""For a summary."""
RESULTS = Skim(starts_of(PASSING))
"""For the results of all attempts."""


def skim_of_attempts(attempts: Iterable[str]) -> Skim:
    """Returns which lines are needed for all about the instances of these attempts. Raises `ValueError` for other names."""
    instances = [split_attempt(attempt).instance for attempt in attempts]
    return Skim(starts_of(OF_ATTEMPTS), tuple(f'"{instance}/'.encode() for instance in instances))


def skim_lines(state: SessionState, journal: JournalReader, skim: Skim) -> None:
    """Fold the further complete lines that are needed; the state reads their large values again from the journal."""
    state.journal = journal
    for line in journal.file.lines(journal.size):
        if skim.needs(line):
            apply(state, journal.add(line))
        else:
            journal.pass_over(line)
