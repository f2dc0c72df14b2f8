"""The difference between two texts as hunks of rows, and as plain lines.

Lines are matched by content (`tui.line_matching`). Swapped texts give the mirrored difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from .line_matching import Marks, Pair, match_lines

CONTEXT = 3
"""Same lines that are shown around a change."""


class Kind(StrEnum):
    """The meaning of a row."""

    SAME = "same"
    CHANGED = "changed"
    """A removed line and the similar line that replaces it."""
    REMOVED = "removed"
    ADDED = "added"
    MOVED_AWAY = "moved away"
    """A line of a moved block in its old place."""
    MOVED_HERE = "moved here"
    """The same line in its new place."""


class Row(NamedTuple):
    """One line, or a pair of lines. A row of a moved block has both its numbers, too."""

    kind: Kind
    old: int | None
    """0-based line number."""
    new: int | None
    old_marks: Marks = ()
    """The changed words of the old line."""
    new_marks: Marks = ()


class Hunk(NamedTuple):
    """Changes close to each other, with same lines around them."""

    skipped: int
    """Same lines between the hunk before, or the start, and this hunk."""
    rows: tuple[Row, ...]


class Diff(NamedTuple):
    """A whole difference; no hunks if the texts are the same."""

    hunks: tuple[Hunk, ...]
    rest: int
    """Same lines after the last hunk."""

    def count(self, *kinds: Kind) -> int:
        """Returns the number of rows of these kinds."""
        return sum(row.kind in kinds for hunk in self.hunks for row in hunk.rows)

    @property
    def summary(self) -> str:
        """`+14 -9`, and the number of moved lines if there are any."""
        added, removed = self.count(Kind.ADDED, Kind.CHANGED), self.count(Kind.REMOVED, Kind.CHANGED)
        moved = self.count(Kind.MOVED_HERE)
        return f"+{added} -{removed}" + (f", {moved} moved" if moved else "")


def compare_lines(old: Sequence[str], new: Sequence[str]) -> Diff:
    """Returns the difference from the lines `old` to the lines `new`."""
    rows = list(_rows(old, new))
    is_shown = [False] * len(rows)
    for place, row in enumerate(rows):
        if row.kind is not Kind.SAME:
            first, last = max(place - CONTEXT, 0), min(place + CONTEXT + 1, len(rows))
            is_shown[first:last] = [True] * (last - first)
    if not any(is_shown):
        return Diff((), len(rows))
    for place, neighbours in enumerate(zip([True, *is_shown], [*is_shown[1:], True], strict=False)):
        # A note about one hidden line would take the place of that line.
        is_shown[place] = is_shown[place] or all(neighbours)
    hunks: list[Hunk] = []
    skipped = 0
    for shown, stretch in groupby(zip(is_shown, rows, strict=True), key=lambda item: item[0]):
        stretch_rows = tuple(row for _, row in stretch)
        if shown:
            hunks.append(Hunk(skipped, stretch_rows))
        skipped = 0 if shown else len(stretch_rows)
    return Diff(tuple(hunks), skipped)


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
    """Yield all lines: between two pairs first those of the old text, then those of the new text."""
    pairs, moves = match_lines(old, new)
    sources = {there: here for here, there in moves.items()}
    i = j = 0
    for pair in [*pairs, Pair(len(old), len(new))]:
        for number in range(i, pair.old):
            target = moves.get(number)
            yield Row(Kind.REMOVED if target is None else Kind.MOVED_AWAY, number, target)
        for number in range(j, pair.new):
            source = sources.get(number)
            yield Row(Kind.ADDED if source is None else Kind.MOVED_HERE, source, number)
        if pair.old < len(old):
            yield Row(Kind.SAME if old[pair.old] == new[pair.new] else Kind.CHANGED, *pair)
        i, j = pair.old + 1, pair.new + 1


def diff_text(diff: Diff, old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Returns the difference as plain lines, each after its sign: `-`, `+`, `>` for a moved line, or a space."""
    lines: list[str] = []
    for hunk in diff.hunks:
        lines += [f"... {skipped_words(hunk.skipped)}"] if hunk.skipped else []
        for kind, rows in stretches(hunk.rows):
            if kind is Kind.MOVED_AWAY:
                lines.append(f"... {moved_words(rows)}")
                continue
            for row in rows:
                if row.old is not None and kind is not Kind.MOVED_HERE:
                    lines.append(f"{' ' if kind is Kind.SAME else '-'}{old[row.old]}")
                if row.new is not None and kind is not Kind.SAME:
                    lines.append(f"{'>' if kind is Kind.MOVED_HERE else '+'}{new[row.new]}")
    if lines and diff.rest:
        lines.append(f"... {skipped_words(diff.rest)}")
    return lines


def stretches(rows: Sequence[Row]) -> Iterator[tuple[Kind, list[Row]]]:
    """Yield the rows in stretches of one kind; each moved block is a stretch of its own."""

    def stretch(row: Row) -> tuple[Kind, int]:
        is_moved = row.kind in (Kind.MOVED_AWAY, Kind.MOVED_HERE)
        return row.kind, row.new - row.old if is_moved and row.old is not None and row.new is not None else 0

    for (kind, _), stretch_rows in groupby(rows, key=stretch):
        yield kind, list(stretch_rows)


def skipped_words(lines: int) -> str:
    """Returns the words that stand for unchanged lines."""
    return f"{lines} unchanged line{'s' if lines != 1 else ''}"


def moved_words(rows: Sequence[Row]) -> str:
    """Returns the words that stand for a moved block in its old place."""
    return f"{len(rows)} lines moved to line {(rows[0].new or 0) + 1}"
