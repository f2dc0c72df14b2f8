"""The difference between two texts as hunks of rows, and as a unified diff.

Lines are matched by content: equal lines, similar lines with their changed words, and moved blocks.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import groupby, pairwise
from typing import NamedTuple

CONTEXT = 3
"""Same lines that are shown around a change."""
MOVED_LINES = 3
"""A block counts as moved if it has at least so many lines with words."""
SIMILAR = 0.5
"""Share of equal words from which a removed and an added line are a pair."""
MOST_COMPARISONS = 40_000
"""Lines of a larger block are not paired: the work is the product of its removed and its added lines."""
MOST_TOKENS = 1000
"""The words of a longer pair of lines are not compared: both lines count as changed from end to end."""
TOKEN = re.compile(r"\d[\w.]*|\w+|[^\w\s]")
WORD = re.compile(r"\w+")

Marks = tuple[tuple[int, int], ...]
"""Ranges of characters within a line."""


class LineKind(StrEnum):
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


OLD_KINDS = (LineKind.REMOVED, LineKind.CHANGED, LineKind.MOVED_AWAY)
"""Kinds of the lines that only the old text has at their place."""
ONLY_NEW = (LineKind.ADDED, LineKind.MOVED_HERE)
NEW_KINDS = (*ONLY_NEW, LineKind.CHANGED)


class DiffRow(NamedTuple):
    """One line, or a pair of lines. A row of a moved block has both its numbers, too."""

    kind: LineKind
    old: int | None
    """0-based line number."""
    new: int | None
    old_marks: Marks = ()
    """The changed words of the old line."""
    new_marks: Marks = ()


class Diff(NamedTuple):
    """A whole difference; no hunks if the texts are the same."""

    rows: tuple[DiffRow, ...]
    """All lines: between two pairs first those of the old text, then those of the new text."""
    hunks: tuple[range, ...]
    """Places of the rows of each hunk: changes close to each other, with same lines around them."""

    def parts(self) -> Iterator[tuple[Sequence[DiffRow], Sequence[DiffRow]]]:
        """Yield the same rows before a hunk and the rows of the hunk; at last the rows behind all hunks, and none."""
        start = 0
        for hunk in self.hunks:
            yield self.rows[start : hunk.start], self.rows[hunk.start : hunk.stop]
            start = hunk.stop
        yield self.rows[start:], ()

    def count(self, *kinds: LineKind) -> int:
        """Returns the number of rows of these kinds."""
        return sum(row.kind in kinds for row in self.rows)

    @property
    def summary(self) -> str:
        """`+14 -9`, and how many of these lines are moved if there are any."""
        moved = self.count(LineKind.MOVED_HERE)
        size = diff_words(self.count(*NEW_KINDS), self.count(*OLD_KINDS))
        return f"{size}, {moved} moved" if moved else size


def diff_words(added: int, removed: int) -> str:
    """Returns the size of a difference: `+14 -9`; a changed and a moved line are added and removed, as in a unified diff."""
    return f"+{added} -{removed}"


def count_changes(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Returns the numbers of added and of removed lines, as `Diff.summary` has them; faster."""
    equal = len(_equal_lines(old, new))
    return len(new) - equal, len(old) - equal


def compare_lines(old: Sequence[str], new: Sequence[str]) -> Diff:
    """Returns the difference from the lines `old` to the lines `new`."""
    rows = tuple(_rows(old, new))
    hunks: list[range] = []
    for place, row in enumerate(rows):
        if row.kind is LineKind.SAME:
            continue
        first, last = place - CONTEXT, place + CONTEXT + 1
        # A note about one hidden line would take the place of that line.
        if hunks and first <= hunks[-1].stop + 1:
            first = hunks.pop().start
        hunks.append(range(first if first > 1 else 0, last if last < len(rows) - 1 else len(rows)))
    return Diff(rows, tuple(hunks))


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffRow]:
    pairs, moves = _matched(old, new)
    sources = {there: here for here, there in moves.items()}
    for (last, new_last), (i, j) in pairwise([(-1, -1), *pairs, (len(old), len(new))]):
        for number in range(last + 1, i):
            target = moves.get(number)
            yield DiffRow(LineKind.REMOVED if target is None else LineKind.MOVED_AWAY, number, target)
        for number in range(new_last + 1, j):
            source = sources.get(number)
            yield DiffRow(LineKind.ADDED if source is None else LineKind.MOVED_HERE, source, number)
        if i < len(old) and old[i] == new[j]:
            yield DiffRow(LineKind.SAME, i, j)
        elif i < len(old):
            yield DiffRow(LineKind.CHANGED, i, j, *_marks(old[i], new[j]))


def _matched(old: Sequence[str], new: Sequence[str]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """The numbers of equal and similar lines, rising on both sides; old and new number of each moved line."""
    equal = _equal_lines(old, new)
    removed, added = (
        set(range(len(old))) - {i for i, _ in equal},
        set(range(len(new))) - {j for _, j in equal},
    )
    moves = _moves(old, new, removed, added)
    removed -= moves.keys()
    added -= set(moves.values())
    pairs = list(equal)
    for (last, new_last), (i, j) in pairwise([(-1, -1), *equal, (len(old), len(new))]):
        olds = [number for number in range(last + 1, i) if number in removed]
        news = [number for number in range(new_last + 1, j) if number in added]
        pairs += _similar(old, new, olds, news)
    return sorted(pairs), moves


def _equal_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The numbers of equal lines, rising on both sides."""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    stop, new_stop = len(old) - end, len(new) - end
    equal = [(place, place) for place in range(start)]
    for block in SequenceMatcher(_is_bare, old[start:stop], new[start:new_stop]).get_matching_blocks():
        equal += [(start + block.a + step, start + block.b + step) for step in range(block.size)]
    return equal + [(stop + step, new_stop + step) for step in range(end)]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """The number of equal lines at the start."""
    lines = enumerate(zip(old, new, strict=False))
    return next((place for place, (here, there) in lines if here != there), min(len(old), len(new)))


def _is_bare(line: str) -> bool:
    return not WORD.search(line)


def _moves(old: Sequence[str], new: Sequence[str], removed: set[int], added: set[int]) -> dict[int, int]:
    """Blocks of removed lines that come again among the added lines, longest first, as old and new line numbers."""
    before: list[object] = [line if number in removed else (number, "old") for number, line in enumerate(old)]
    after: list[object] = [line if number in added else (number, "new") for number, line in enumerate(new)]
    moves: dict[int, int] = {}
    while True:
        i, j, size = SequenceMatcher(None, before, after).find_longest_match()
        if size < MOVED_LINES:
            return moves
        if sum(not _is_bare(line) for line in old[i : i + size]) >= MOVED_LINES:
            moves |= {i + step: j + step for step in range(size)}
        before[i : i + size] = [(number, "old") for number in range(i, i + size)]
        after[j : j + size] = [(number, "new") for number in range(j, j + size)]


def _similar(
    old: Sequence[str], new: Sequence[str], removed: Sequence[int], added: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs of similar lines that rise on both sides; the most similar lines are paired first."""
    if len(removed) * len(added) > MOST_COMPARISONS:
        return []
    words, new_words = (
        [frozenset(WORD.findall(text[n])) for n in numbers]
        for text, numbers in ((old, removed), (new, added))
    )
    candidates: list[tuple[float, int, int, int]] = []
    for i, here in enumerate(words):
        for j, there in enumerate(new_words):
            share = 2 * len(here & there) / max(len(here) + len(there), 1)
            if share >= SIMILAR:
                candidates.append((-share, abs(i - j), i, j))
    pairs = [(-1, -1), (len(removed), len(added))]
    for _, _, i, j in sorted(candidates):
        place = bisect(pairs, (i, j))
        if pairs[place - 1][0] < i < pairs[place][0] and pairs[place - 1][1] < j < pairs[place][1]:
            pairs.insert(place, (i, j))
    return [(removed[i], added[j]) for i, j in pairs[1:-1]]


def _marks(old: str, new: str) -> tuple[Marks, Marks]:
    """The changed words of two lines; blanks do not count."""
    before, after = list(TOKEN.finditer(old)), list(TOKEN.finditer(new))
    if len(before) + len(after) > MOST_TOKENS:
        return ((0, len(old)),), ((0, len(new)),)
    words, new_words = ([token[0] for token in tokens] for tokens in (before, after))
    edits = SequenceMatcher(None, words, new_words, autojunk=False).get_opcodes()
    changes = [edit for edit in edits if edit[0] != "equal"]
    return _ranges(old, before, (edit[1:3] for edit in changes)), _ranges(
        new, after, (edit[3:5] for edit in changes)
    )


def _ranges(line: str, tokens: Sequence[re.Match[str]], edits: Iterable[tuple[int, int]]) -> Marks:
    """Ranges of tokens as ranges of characters; ranges with only blanks between them are one."""
    marks: list[tuple[int, int]] = []
    for first, last in edits:
        if first == last:
            continue
        start = tokens[first].start()
        if marks and not line[marks[-1][1] : start].strip():
            start, _ = marks.pop()
        marks.append((start, tokens[last - 1].end()))
    return tuple(marks)


def unified_lines(
    old: Sequence[str], new: Sequence[str], old_name: str, new_name: str, diff: Diff | None = None
) -> list[str]:
    """Returns the lines of a unified diff of the size of `diff`, the difference of the texts; empty if they are the same."""
    diff = diff or compare_lines(old, new)
    lines = [f"--- {old_name}", f"+++ {new_name}"] if diff.hunks else []
    at = new_at = 0
    for folded, hunk in diff.parts():
        at, new_at = at + len(folded), new_at + len(folded)
        body: list[str] = []
        for is_same, group in groupby(hunk, key=lambda row: row.kind is LineKind.SAME):
            rows = list(group)
            before = [old[row.old] for row in rows if row.old is not None and row.kind not in ONLY_NEW]
            after = [new[row.new] for row in rows if row.new is not None and row.kind in NEW_KINDS]
            body += [f"{' ' if is_same else '-'}{line}" for line in before]
            body += [f"+{line}" for line in after]
        if body:
            length = sum(not line.startswith("+") for line in body)
            new_length = sum(not line.startswith("-") for line in body)
            lines += [f"@@ -{_range(at, length)} +{_range(new_at, new_length)} @@", *body]
            at, new_at = at + length, new_at + new_length
    return lines


def _range(start: int, length: int) -> str:
    """A range of lines in the head of a hunk; an empty range has the number of the line before it."""
    return f"{start + (length > 0)}{f',{length}' if length != 1 else ''}"


def stretches(rows: Sequence[DiffRow]) -> Iterator[tuple[LineKind, list[DiffRow]]]:
    """Yield the rows in stretches of one kind; each moved block is a stretch of its own."""

    def stretch(row: DiffRow) -> tuple[LineKind, int]:
        is_moved = row.kind in (LineKind.MOVED_AWAY, LineKind.MOVED_HERE)
        return row.kind, row.new - row.old if is_moved and row.old is not None and row.new is not None else 0

    for (kind, _), stretch_rows in groupby(rows, key=stretch):
        yield kind, list(stretch_rows)


def skipped_words(lines: int) -> str:
    """Returns the words that stand for unchanged lines."""
    return f"{lines} unchanged line{'s' if lines != 1 else ''}"


def moved_words(rows: Sequence[DiffRow]) -> str:
    """Returns the words that stand for a moved block in its old place."""
    return f"{len(rows)} lines moved to line {(rows[0].new or 0) + 1}"
