"""Finds words in what models wrote: reasoning and replies, from the journal on the disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from sessions.state.state import AttemptState, CallState
from tui.cockpit.draw.lines import clean

BEFORE = 24
"""Characters of a line that are shown before the first of the words."""


class FoundText(NamedTuple):
    """The first line with the words in the texts of a call."""

    attempt: str
    line: str
    further: int
    """Number of further lines with the words."""


def newest_first(attempts: Iterable[AttemptState]) -> list[CallState]:
    """Return the calls in the reverse order of their replies in the journal, which is the fastest to read."""
    return sorted((call for attempt in attempts for call in attempt.calls), key=_place, reverse=True)


def _place(call: CallState) -> float:
    if call.reply is None:
        return float("inf")
    return call.reply.content if isinstance(call.reply.content, int) else call.reply.content.seq


def find_words(calls: Iterable[CallState], words: str) -> Iterator[FoundText | None]:
    """Yield for each call what was found, or `None`. All words are in the same line, in upper or lower case.

    Reads the journal, so it runs in a thread. Raises `JournalNotReadable`.
    """
    wanted = words.casefold().split()
    for call in calls:
        lines = f"{call.reasoning}\n{call.text}".splitlines()
        if matches := lines_with(lines, wanted):
            yield FoundText(call.attempt, _excerpt(clean(matches[0]).strip(), wanted[0]), len(matches) - 1)
        else:
            yield None


def lines_with(lines: Iterable[str], words: Collection[str]) -> list[str]:
    """Return the lines that have all words, which are in casefold."""
    return [line for line in lines if all(word in line.casefold() for word in words)]


def _excerpt(line: str, word: str) -> str:
    """Return a line from a little before a word on."""
    start = line.casefold().find(word) - BEFORE
    return f"…{line[start:]}" if start > 0 else line
