"""The difference between two sources, unified or side by side, as styled lines."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import NamedTuple

from tui.cockpit.highlighting import highlighted
from tui.cockpit.lines import Line, Span, cells, cut

LONGEST_LINES = 4000
"""Longer sources are not compared on screen: the work grows with the product of their lengths."""
CONTEXT = 4
CLOSE = 0.5
"""Lines at least this much alike count as one line changed, and the change within it is marked."""


class Change(NamedTuple):
    """One row of a diff: a line of the old source, of the new one, or of both where they agree."""

    old: int | None
    """0-based line number."""
    new: int | None
    old_marks: tuple[tuple[int, int], ...] = ()
    """What changed within a line, as ranges of characters."""
    new_marks: tuple[tuple[int, int], ...] = ()

    @property
    def same(self) -> bool:
        """Whether both sides agree."""
        return self.old is not None and self.new is not None and not (self.old_marks or self.new_marks)


class Gap(NamedTuple):
    """Lines left out because both sides agree there."""

    lines: int


class Comparison(NamedTuple):
    """All of a diff."""

    rows: tuple[Change | Gap, ...]
    added: int
    removed: int


@lru_cache(maxsize=32)
def compare(old: str, new: str) -> Comparison | None:
    """The difference from `old` to `new`; `None` when one of them is too long to compare on screen."""
    before, after = _texts(old), _texts(new)
    if max(len(before), len(after)) > LONGEST_LINES:
        return None
    rows: list[Change | Gap] = []
    added = removed = 0
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        shown = next((row for row in reversed(rows) if isinstance(row, Change)), None)
        last = -1 if shown is None or shown.old is None else shown.old
        first_old = group[0][1]
        left_out = first_old - (last + 1) if rows else first_old
        if left_out > 0:
            rows.append(Gap(left_out))
        for tag, a, b, c, d in group:
            if tag == "equal":
                rows += [Change(i, j) for i, j in zip(range(a, b), range(c, d), strict=True)]
                continue
            added += d - c
            removed += b - a
            rows += _replaced(before, after, range(a, b), range(c, d))
    if rows:
        last = max((row.old for row in rows if isinstance(row, Change) and row.old is not None), default=-1)
        if len(before) - 1 - last > 0:
            rows.append(Gap(len(before) - 1 - last))
    return Comparison(tuple(rows), added, removed)


def _texts(source: str) -> list[str]:
    return ["".join(span.text for span in row) for row in highlighted(source)]


def _replaced(before: list[str], after: list[str], old: range, new: range) -> Iterator[Change]:
    for i, j in zip_longest(old, new):
        if i is None or j is None:
            yield Change(i, j)
            continue
        marks = _marks(before[i], after[j])
        yield Change(i, j, *marks) if marks else Change(i, None)
        if not marks:
            yield Change(None, j)


def _marks(old: str, new: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]] | None:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    if matcher.quick_ratio() < CLOSE or matcher.ratio() < CLOSE:
        return None
    edits = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return tuple((a, b) for _, a, b, _, _ in edits if b > a), tuple(
        (c, d) for _, _, _, c, d in edits if d > c
    )


def marked(row: Line, marks: Sequence[tuple[int, int]], *, under: str, strong: str) -> Line:
    """The line with one style laid under all of it and a stronger one under the marked ranges."""
    edges = sorted({edge for mark in marks for edge in mark})
    spans: list[Span] = []
    at = 0
    for span in row:
        end = at + len(span.text)
        stops = [at, *(edge for edge in edges if at < edge < end), end]
        for start, stop in pairwise(stops):
            inside = any(first <= start < last for first, last in marks)
            spans.append(
                Span(span.text[start - at : stop - at], f"{strong if inside else under} {span.style}".strip())
            )
        at = end
    return tuple(spans)


def number(value: int | None, width: int) -> str:
    """A line number for people, 1-based, or blank."""
    return " " * width if value is None else str(value + 1).rjust(width)


def unified(old: str, new: str, comparison: Comparison) -> list[Line]:
    """One column: `-` and `+` lines with the numbers of both sides."""
    before, after = highlighted(old), highlighted(new)
    width = len(str(max(len(before), len(after))))
    lines: list[Line] = []
    held: list[Line] = []
    for row in comparison.rows:
        if isinstance(row, Gap):
            lines += [*held, _gap(row)]
            held = []
            continue
        if row.same and row.old is not None:
            gutter = Span(f"{number(row.old, width)} {number(row.new, width)}   ", "dim")
            lines += [*held, (gutter, *before[row.old])]
            held = []
            continue
        if row.old is not None:
            if held and row.new is None:
                lines += held
                held = []
            gutter = Span(f"{number(row.old, width)} {number(None, width)} - ", "del bad")
            lines.append((gutter, *marked(before[row.old], row.old_marks, under="del", strong="del-strong")))
        if row.new is not None:
            gutter = Span(f"{number(None, width)} {number(row.new, width)} + ", "add good")
            held.append((gutter, *marked(after[row.new], row.new_marks, under="add", strong="add-strong")))
    return lines + held


def side_by_side(old: str, new: str, comparison: Comparison, width: int) -> list[Line]:
    """Two columns in `width` cells: the old side left, the new one right; long lines are cut."""
    before, after = highlighted(old), highlighted(new)
    digits = len(str(max(len(before), len(after))))
    half = (width - 3) // 2
    lines: list[Line] = []
    for row in comparison.rows:
        if isinstance(row, Gap):
            lines.append(_gap(row))
            continue
        left = _half(before, row.old, row.old_marks, digits, half, "" if row.same else "del")
        right = _half(after, row.new, row.new_marks, digits, half, "" if row.same else "add")
        lines.append((*left, Span(" │ ", "dim"), *right))
    return lines


def _half(
    source: Sequence[Line],
    place: int | None,
    marks: Sequence[tuple[int, int]],
    digits: int,
    width: int,
    style: str,
) -> Line:
    if place is None:
        return (Span(" " * width),)
    sign = {"del": "-", "add": "+", "": " "}[style]
    spans = [
        Span(f"{number(place, digits)} {sign} ", {"del": "del bad", "add": "add good", "": "dim"}[style])
    ]
    left = width - digits - 3
    text = marked(source[place], marks, under=style, strong=f"{style}-strong") if style else source[place]
    for span in text:
        head, _ = cut(span.text, max(left, 0))
        if left > 0 and head:
            spans.append(Span(head, span.style))
        left -= cells([span])
    return (*spans, Span(" " * max(left, 0), style))


def _gap(gap: Gap) -> Line:
    return (Span(f"    ... {gap.lines} same line{'s' if gap.lines != 1 else ''}", "hunk"),)
