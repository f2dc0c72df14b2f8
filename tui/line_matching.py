"""Which lines of two texts belong together: equal lines, similar lines with their changed words, moved blocks."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

MOVED_LINES = 3
"""A block counts as moved if it has at least so many lines with words."""
MOST_PLACES = 20
"""Places where a moved block is looked for; lines that repeat more often than this are no landmark."""
SIMILAR = 0.5
"""Share of equal words from which a removed and an added line are a pair."""
MOST_COMPARISONS = 40_000
"""Lines of a larger block are not paired: the work is the product of its removed and its added lines."""
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
    equal = _equal(old, new)
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


def _equal(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Numbers of equal lines, rising on both sides (patience diff)."""
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
        stretch = _Stretch(i, old_end, j, new_end)
        anchors = _unique_lines(old, new, stretch) or _longest_blocks(old, new, stretch)
        for anchor, new_anchor in [*anchors, (old_end, new_end)] if anchors else ():
            stretches.append(_Stretch(i, anchor, j, new_anchor))
            i, j = anchor, new_anchor
    return sorted(matches)


def _unique_lines(old: Sequence[str], new: Sequence[str], stretch: _Stretch) -> list[tuple[int, int]]:
    """The longest rising sequence of lines with words that occur once on each side of the stretch."""
    i, old_end, j, new_end = stretch
    in_old, in_new = Counter(old[i:old_end]), Counter(new[j:new_end])
    places = {new[number]: number for number in range(j, new_end)}
    chains: list[tuple[int, int, int]] = []
    """(old number, new number, index of the link before; -1 if it is the first)"""
    ends: list[int] = []
    """New number at the end of the best chain of each length."""
    links: list[int] = []
    """Index of the link at the end of the best chain of each length."""
    for number in range(i, old_end):
        line = old[number]
        if in_old[line] != 1 or in_new[line] != 1 or _is_bare(line):
            continue
        length = bisect_left(ends, places[line])
        chains.append((number, places[line], links[length - 1] if length else -1))
        ends[length : length + 1] = [places[line]]
        links[length : length + 1] = [len(chains) - 1]
    anchors: list[tuple[int, int]] = []
    link = links[-1] if links else -1
    while link >= 0:
        number, place, link = chains[link]
        anchors.append((number, place))
    return anchors[::-1]


def _longest_blocks(old: Sequence[str], new: Sequence[str], stretch: _Stretch) -> list[tuple[int, int]]:
    """Starts of the longest equal blocks of a stretch without unique lines; a line without words starts none."""
    i, old_end, j, new_end = stretch
    blocks = SequenceMatcher(_is_bare, old[i:old_end], new[j:new_end]).get_matching_blocks()
    return [(i + block.a, j + block.b) for block in blocks if block.size]


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
    old_words, new_words = [_words(old[i]) for i in removed], [_words(new[j]) for j in added]
    # Squares: one pair of twins counts more than two pairs of half-similar lines.
    worth = [[_similarity(words, others) ** 2 for others in new_words] for words in old_words]
    best = [[0.0] * (len(added) + 1) for _ in range(len(removed) + 1)]
    for i in reversed(range(len(removed))):
        for j in reversed(range(len(added))):
            paired = worth[i][j] + best[i + 1][j + 1] if worth[i][j] else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(removed) and j < len(added):
        if worth[i][j] and best[i][j] == worth[i][j] + best[i + 1][j + 1]:
            pairs.append((removed[i], added[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _words(line: str) -> frozenset[tuple[str, int]]:
    """The words of a line, each with the number of its occurrence."""
    seen: Counter[str] = Counter()
    words: set[tuple[str, int]] = set()
    for word in WORD.findall(line):
        seen[word] += 1
        words.add((word, seen[word]))
    return frozenset(words)


def _similarity(words: frozenset[tuple[str, int]], others: frozenset[tuple[str, int]]) -> float:
    """Share of equal words; 0 if it is less than `SIMILAR`."""
    total = len(words) + len(others)
    share = 2 * len(words & others) / total if total else 0.0
    return share if share >= SIMILAR else 0.0


def _marks(old: str, new: str) -> tuple[Marks, Marks]:
    """The changed words of two lines."""
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    if len(before) + len(after) > MOST_TOKENS:
        return ((0, len(old)),), ((0, len(new)),)
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    edits = [code for code in codes if code[0] != "equal"]
    return (
        _ranges(before, [(first, last) for _, first, last, _, _ in edits]),
        _ranges(after, [(first, last) for _, _, _, first, last in edits]),
    )


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
