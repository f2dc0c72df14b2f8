"""Draws the difference between two sources as styled lines, unified or side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from tui.cockpit.highlighting import highlighted
from tui.cockpit.lines import ELLIPSIS, Line, Span, beginning, cells, plain, wrap_line
from tui.line_matching import Marks
from tui.text_diff import Diff, Kind, Row, compare_lines, diff_text, moved_words, skipped_words, stretches

LONGEST_LINES = 4000
"""Longer sources are not compared on screen."""
CURRENT = "▌"
"""Stands before the signs of the current hunk."""


class Drawn(NamedTuple):
    """A drawn diff."""

    lines: list[Line]
    hunks: list[int]
    """Index of the line with the first change of each hunk."""


@lru_cache(maxsize=32)
def compare(old: str, new: str) -> Diff | None:
    """Returns the difference from `old` to `new`; `None` if one of them is too long."""
    before, after = _texts(old), _texts(new)
    return None if max(len(before), len(after)) > LONGEST_LINES else compare_lines(before, after)


def copied(old: str, new: str, diff: Diff) -> str:
    """Returns the diff as text for the clipboard."""
    return "\n".join(diff_text(diff, _texts(old), _texts(new)))


def _texts(source: str) -> list[str]:
    return [plain(row) for row in highlighted(source)]


def marked(row: Line, marks: Marks, *, under: str, strong: str) -> Line:
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


def unified(old: str, new: str, diff: Diff, width: int, *, current: int) -> Drawn:
    """One column: the numbers of both sides, a sign, the line, folded at `width` cells.

    A changed line stands above its successor.
    """
    before, after = highlighted(old), highlighted(new)
    digits = len(str(max(len(before), len(after))))
    indent = 2 * digits + 4

    def folded(row: Row, sign: str, style: str, text: Line) -> list[Line]:
        numbers = f"{number(row.old, digits)} {number(row.new, digits)}"
        first, *rest = wrap_line(text, width - indent)
        blank = " " * len(numbers) + sign[0] + " " * (len(sign) - 1)
        return [(Span(numbers + sign, style), *first), *((Span(blank, style), *part) for part in rest)]

    def drawn(row: Row, bar: str) -> list[Line]:
        if row.kind is Kind.SAME and row.new is not None:
            return folded(row, "   ", "dim", after[row.new])
        if row.kind is Kind.MOVED_HERE and row.new is not None:
            return folded(row, f"{bar}> ", "hunk", after[row.new])
        lines: list[Line] = []
        if row.old is not None:
            text = marked(before[row.old], row.old_marks, under="del", strong="del-strong")
            lines += folded(row._replace(new=None), f"{bar}- ", "del bad", text)
        if row.new is not None:
            text = marked(after[row.new], row.new_marks, under="add", strong="add-strong")
            lines += folded(row._replace(old=None), f"{bar}+ ", "add good", text)
        return lines

    return _draw(diff, drawn, current=current, indent=indent)


def side_by_side(old: str, new: str, diff: Diff, width: int, *, current: int) -> Drawn:
    """Two columns in `width` cells: the old side left, the new side right; long lines are cut."""
    before, after = highlighted(old), highlighted(new)
    digits = len(str(max(len(before), len(after))))
    size = digits, (width - 3) // 2

    def drawn(row: Row, bar: str) -> list[Line]:
        match row.kind:
            case Kind.SAME:
                left = _half(before, row.old, (), size, _Look("   ", "dim"))
                right = _half(after, row.new, (), size, _Look("   ", "dim"))
            case Kind.MOVED_HERE:
                left = (Span(f"{number(row.old, digits)}{bar}> ".ljust(size[1]), "hunk"),)
                right = _half(after, row.new, (), size, _Look(f"{bar}> ", "hunk"))
            case _:
                left = _half(before, row.old, row.old_marks, size, _Look(f"{bar}- ", "del bad", "del"))
                right = _half(after, row.new, row.new_marks, size, _Look(f"{bar}+ ", "add good", "add"))
        return [(*left, Span(" │ ", "dim"), *right)]

    return _draw(diff, drawn, current=current, indent=digits + 3)


def _draw(diff: Diff, drawn: Callable[[Row, str], list[Line]], *, current: int, indent: int) -> Drawn:
    """All hunks, each row as `drawn(row, bar)` draws it; notes stand for what is left out."""
    lines: list[Line] = []
    hunks: list[int] = []
    for place, hunk in enumerate(diff.hunks):
        if hunk.skipped:
            lines.append(_note(skipped_words(hunk.skipped), indent))
        bar = CURRENT if place == current and len(diff.hunks) > 1 else " "
        for kind, rows in stretches(hunk.rows):
            if kind is not Kind.SAME and len(hunks) == place:
                hunks.append(len(lines))
            if kind is Kind.MOVED_AWAY:
                lines.append(_note(moved_words(rows), indent))
            else:
                lines += [line for row in rows for line in drawn(row, bar)]
    if diff.hunks and diff.rest:
        lines.append(_note(skipped_words(diff.rest), indent))
    return Drawn(lines, hunks)


def _note(words: str, indent: int) -> Line:
    return (Span(f"{'...':<{indent}}{words}", "hunk"),)


class _Look(NamedTuple):
    """How one side of a row looks."""

    sign: str
    gutter: str
    """Style of number and sign."""
    under: str = ""
    """Style under the text."""


def _half(
    source: Sequence[Line], place: int | None, marks: Marks, size: tuple[int, int], look: _Look
) -> Line:
    """One side of a row; `size` is the width of a line number and of the whole side, in cells."""
    digits, width = size
    if place is None:
        return (Span(" " * width),)
    text = source[place]
    if look.under:
        text = marked(text, marks, under=look.under, strong=f"{look.under}-strong")
    room = max(width - digits - len(look.sign), 1)
    end = ELLIPSIS if cells(text) > room else ""
    room -= len(end)
    spans = [Span(f"{number(place, digits)}{look.sign}", look.gutter)]
    for span in text:
        head = beginning(span.text, room)
        spans.append(Span(head, span.style))
        room -= cells([spans[-1]])
        if head != span.text:
            break
    return (*spans, Span(end + " " * room, look.under or "dim"))
