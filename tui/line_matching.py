"""Which lines of two texts belong together: equal lines, similar lines with their changed words, moved blocks."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

MOVED_LINES = 3
"""A block counts as moved if it has at least so many lines with words."""
MOST_PLACES = 20
"""Places where a moved block is looked for; lines that repeat more often than this are no landmark."""
SIMILAR = 0.5
"""Share of equal words from which a removed and an added line are a pair."""
MOST_COMPARISONS = 40_000
"""Lines of a larger block are not paired: the work is the product of its removed and its added lines."""
MOST_TOKEN_COMPARISONS = 400
"""A larger stretch of two lines without a unique token counts as changed from end to end."""
MOST_TOKENS = 1000
"""The words of a longer pair of lines are not compared: both lines count as changed from end to end."""
TOKEN = re.compile(r"\d[\w.]*|\w+|\s+|.", re.DOTALL)
WORD = re.compile(r"\w+")

Marks = tuple[tuple[int, int], ...]
"""Ranges of characters within a line."""


class Pair(NamedTuple):
    """Two equal or similar lines; line numbers begin at 0."""

    old: int
    new: int
    old_marks: Marks = ()
    """The changed words of the old line."""
    new_marks: Marks = ()


class Matching(NamedTuple):
    """All that belongs together in two texts."""

    pairs: tuple[Pair, ...]
    """In their order on both sides."""
    moves: dict[int, int]
    """Old and new number of each moved line."""


class _Stretch(NamedTuple):
    """A part of both texts: lines `old_start` to `old_end` and `new_start` to `new_end`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def match_lines(old: Sequence[str], new: Sequence[str]) -> Matching:
    """Returns which lines belong together; swapped texts give the mirrored matching."""
    if list(new) < list(old):
        # The algorithms below decide ties by position. With one fixed order of the texts, both directions agree.
        mirrored = _match_lines(new, old)
        pairs = tuple(Pair(pair.new, pair.old, pair.new_marks, pair.old_marks) for pair in mirrored.pairs)
        return Matching(pairs, {there: here for here, there in mirrored.moves.items()})
    return _match_lines(old, new)


def _match_lines(old: Sequence[str], new: Sequence[str]) -> Matching:
    equal = _equal(old, new, _is_bare, MOST_COMPARISONS)
    removed = set(range(len(old))) - {i for i, _ in equal}
    added = set(range(len(new))) - {j for _, j in equal}
    moves = _moves(old, new, removed, added)
    removed -= moves.keys()
    added -= set(moves.values())
    pairs: list[Pair] = []
    i = j = 0
    for end, new_end in [*equal, (len(old), len(new))]:
        block_removed = [number for number in range(i, end) if number in removed]
        block_added = [number for number in range(j, new_end) if number in added]
        for first, second in _similar(old, new, block_removed, block_added):
            pairs.append(Pair(first, second, *_marks(old[first], new[second])))
        if end < len(old):
            pairs.append(Pair(end, new_end))
        i, j = end + 1, new_end + 1
    return Matching(tuple(pairs), moves)


def _equal(
    old: Sequence[str], new: Sequence[str], is_bare: Callable[[str], bool], limit: int
) -> list[tuple[int, int]]:
    """Numbers of equal parts, rising on both sides (patience diff). A bare part only goes on where others are equal."""
    matches: list[tuple[int, int]] = []
    stretches = [_Stretch(0, len(old), 0, len(new))]
    while stretches:
        i, old_end, j, new_end = stretches.pop()
        while i < old_end and j < new_end and old[i] == new[j]:
            matches.append((i, j))
            i, j = i + 1, j + 1
        while i < old_end and j < new_end and old[old_end - 1] == new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
            matches.append((old_end, new_end))
        common = {part for part in {*old[i:old_end]} & {*new[j:new_end]} if not is_bare(part)}
        olds = [number for number in range(i, old_end) if old[number] in common]
        news = [number for number in range(j, new_end) if new[number] in common]
        anchors = _unique(old, new, olds, news) if common else []
        if not anchors and common and len(olds) * len(news) <= limit:
            anchors = _heaviest(olds, news, [[float(old[i] == new[j]) for j in news] for i in olds])
        for anchor, new_anchor in [*anchors, (old_end, new_end)] if anchors else ():
            stretches.append(_Stretch(i, anchor, j, new_anchor))
            i, j = anchor, new_anchor
    return sorted(matches)


def _unique(
    old: Sequence[str], new: Sequence[str], olds: Sequence[int], news: Sequence[int]
) -> list[tuple[int, int]]:
    """The longest rising sequence of parts that occur once among the numbers of each side."""
    in_old, in_new = Counter(old[number] for number in olds), Counter(new[number] for number in news)
    places = {new[number]: number for number in news}
    chains: list[tuple[int, int, int]] = []
    """(old number, new number, index of the link before; -1 if it is the first)"""
    ends: list[int] = []
    """New number at the end of the best chain of each length."""
    links: list[int] = []
    """Index of the link at the end of the best chain of each length."""
    for number in olds:
        part = old[number]
        if in_old[part] != 1 or in_new[part] != 1:
            continue
        length = bisect_left(ends, places[part])
        chains.append((number, places[part], links[length - 1] if length else -1))
        ends[length : length + 1] = [places[part]]
        links[length : length + 1] = [len(chains) - 1]
    anchors: list[tuple[int, int]] = []
    link = links[-1] if links else -1
    while link >= 0:
        number, place, link = chains[link]
        anchors.append((number, place))
    return anchors[::-1]


def _heaviest(
    olds: Sequence[int], news: Sequence[int], worth: Sequence[Sequence[float]]
) -> list[tuple[int, int]]:
    """Pairs that rise on both sides and are worth most together; `worth` has a row for each of `olds`."""
    best = [[0.0] * (len(news) + 1)]
    """Worth of the best pairs from each place on, by rows from the last one to the first."""
    for row in reversed(worth):
        below = best[-1]
        line = [0.0] * (len(news) + 1)
        right = 0.0
        for j in range(len(news) - 1, -1, -1):
            value = row[j] + below[j + 1] if row[j] else 0.0
            right = line[j] = max(value, below[j], right)
        best.append(line)
    best.reverse()
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(olds) and j < len(news):
        if worth[i][j] and best[i][j] == worth[i][j] + best[i + 1][j + 1]:
            pairs.append((olds[i], news[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _is_bare(line: str) -> bool:
    return not WORD.search(line)


def _moves(old: Sequence[str], new: Sequence[str], removed: set[int], added: set[int]) -> dict[int, int]:
    """Blocks of removed lines that come again among the added lines, as old and new line numbers."""
    places: dict[tuple[str, ...], list[int]] = {}
    for j in sorted(added):
        if all(j + step in added for step in range(MOVED_LINES)):
            places.setdefault(tuple(new[j : j + MOVED_LINES]), []).append(j)
    free = set(added)
    moves: dict[int, int] = {}
    for i in sorted(removed):
        if i in moves:
            continue
        size, place = 0, 0
        for j in places.get(tuple(old[i : i + MOVED_LINES]), ())[:MOST_PLACES]:
            length = 0
            while i + length in removed and j + length in free and old[i + length] == new[j + length]:
                length += 1
            if length > size:
                size, place = length, j
        if sum(not _is_bare(line) for line in old[i : i + size]) >= MOVED_LINES:
            moves |= {i + step: place + step for step in range(size)}
            free -= set(range(place, place + size))
    return moves


def _similar(
    old: Sequence[str], new: Sequence[str], removed: Sequence[int], added: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs of similar lines in their order on both sides, as similar as possible together."""
    if not removed or not added or len(removed) * len(added) > MOST_COMPARISONS:
        return []
    new_words = [_words(new[j]) for j in added]
    places: dict[tuple[str, int], list[int]] = {}
    for place, words in enumerate(new_words):
        for word in words:
            places.setdefault(word, []).append(place)
    worth: list[list[float]] = []
    for i in removed:
        words = _words(old[i])
        row = [0.0] * len(added)
        for place, common in Counter(chain.from_iterable(places.get(word, ()) for word in words)).items():
            share = 2 * common / (len(words) + len(new_words[place]))
            if share >= SIMILAR:
                # Squares: one pair of twins counts more than two pairs of half-similar lines.
                row[place] = share**2
        worth.append(row)
    return _heaviest(removed, added, worth)


def _words(line: str) -> frozenset[tuple[str, int]]:
    """The words of a line, each with the number of its occurrence."""
    seen: Counter[str] = Counter()
    words: set[tuple[str, int]] = set()
    for word in WORD.findall(line):
        seen[word] += 1
        words.add((word, seen[word]))
    return frozenset(words)


def _marks(old: str, new: str) -> tuple[Marks, Marks]:
    """The changed words of two lines."""
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    if len(before) + len(after) > MOST_TOKENS:
        return ((0, len(old)),), ((0, len(new)),)
    equal = [*_equal(before, after, str.isspace, MOST_TOKEN_COMPARISONS), (len(before), len(after))]
    edits = [((i + 1, end), (j + 1, new_end)) for (i, j), (end, new_end) in pairwise([(-1, -1), *equal])]
    return _ranges(before, [edit for edit, _ in edits]), _ranges(after, [edit for _, edit in edits])


def _ranges(tokens: Sequence[str], edits: Sequence[tuple[int, int]]) -> Marks:
    """Ranges of tokens as ranges of characters; ranges with only blanks between them are one."""
    starts = [0]
    for token in tokens:
        starts.append(starts[-1] + len(token))
    marks: list[tuple[int, int]] = []
    end = 0
    for first, last in edits:
        if first == last:
            continue
        if marks and not "".join(tokens[end:first]).strip():
            marks[-1] = (marks[-1][0], starts[last])
        else:
            marks.append((starts[first], starts[last]))
        end = last
    return tuple(marks)
