"""Draws the difference between two sources as styled lines, unified or side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from suites.source.python_source import source_lines
from tui.cockpit.draw.highlighting import highlighted
from tui.cockpit.draw.lines import ELLIPSIS, Line, Span, beginning, cells, plain, wrap_line
from tui.facts.text_diff import (
    Diff,
    DiffRow,
    LineKind,
    Marks,
    compare_lines,
    moved_words,
    skipped_words,
    stretches,
    unified_lines,
)

LONGEST_LINES = 4000
"""Longer sources are not compared on screen."""
DEFINITION = re.compile(r"(?:async )?def (\w+)")
CURRENT = "▌"
"""Stands before the signs of the current hunk."""


class DrawnDiff(NamedTuple):
    """A drawn diff."""

    lines: list[Line]
    hunks: list[int]
    """Index of the line with the first change of each hunk."""
    folds: dict[int, int]
    """Fold by the index of the line in its place. Fold n is before hunk n; the last one is after all hunks."""
    chosen: int | None
    """Index of the chosen error line, if it is in the new source."""


class DiffView(NamedTuple):
    """The open folds and the marked lines of a diff."""

    hunk: int = 0
    """The current hunk."""
    opened: frozenset[int] = frozenset()
    """Folds that a person opened."""
    errors: frozenset[int] = frozenset()
    """Lines of the new source, 1-based, that the error names."""
    chosen: int | None = None
    """The line of them that `e` went to last."""


class SourceDiff(NamedTuple):
    """Two sources and their difference."""

    before: list[Line]
    """Lines of the old source; removed lines and their changed words are marked."""
    after: list[Line]
    """Lines of the new source, marked in the same way."""
    diff: Diff
    text: str
    """The difference for the clipboard, as a unified diff."""


@lru_cache(maxsize=32)
def compare(old: str, new: str) -> SourceDiff | None:
    """Returns the difference from `old` to `new`; `None` if one of them is too long. Slow: call it in a thread."""
    if max(old.count("\n"), new.count("\n")) > LONGEST_LINES:
        return None
    before, after = list(highlighted(old)), list(highlighted(new))
    texts = [plain(row) for row in before], [plain(row) for row in after]
    diff = compare_lines(*texts)
    for row in diff.rows:
        if row.old is not None and row.kind in (LineKind.REMOVED, LineKind.CHANGED):
            before[row.old] = marked(before[row.old], row.old_marks, "del")
        if row.new is not None and row.kind in (LineKind.ADDED, LineKind.CHANGED):
            after[row.new] = marked(after[row.new], row.new_marks, "add")
    return SourceDiff(before, after, diff, "\n".join(unified_lines(*texts, "before", "after", diff)))


def marked(row: Line, marks: Marks, style: str) -> Line:
    """The line with a style laid under all of it, and its strong form under the marked ranges."""
    edges = sorted({edge for mark in marks for edge in mark})
    spans: list[Span] = []
    at = 0
    for span in row:
        end = at + len(span.text)
        stops = [at, *(edge for edge in edges if at < edge < end), end]
        for start, stop in pairwise(stops):
            under = f"{style}-strong" if any(first <= start < last for first, last in marks) else style
            spans.append(Span(span.text[start - at : stop - at], f"{under} {span.style}".strip()))
        at = end
    return tuple(spans)


def number(value: int | None, width: int) -> str:
    """A line number for people, 1-based, or blank."""
    return " " * width if value is None else str(value + 1).rjust(width)


def unified(compared: SourceDiff, width: int, view: DiffView) -> DrawnDiff:
    """Return one column: the numbers of both sides, a sign, the line, folded at `width` cells.

    A changed line is above its successor. `E` marks a line that the error names.
    """
    before, after, diff, _ = compared
    digits = len(str(max(len(before), len(after))))
    indent = 2 * digits + 4 + bool(view.errors)

    def wrapped(row: DiffRow, sign: str, style: str, text: Line) -> list[Line]:
        if view.errors:
            sign += "E" if _is_error(row, view) else " "
        if _is_chosen(row, view):
            style += " error-line"
            text = tuple(Span(span.text, f"error-line {span.style}".strip()) for span in text)
        numbers = f"{number(row.old, digits)} {number(row.new, digits)}"
        first, *rest = wrap_line(text, width - indent)
        head = f"{numbers}{sign} "
        return [(Span(head, style), *first), *((Span(" " * len(head), style), *part) for part in rest)]

    def drawn(row: DiffRow, bar: str) -> list[Line]:
        if row.kind in (LineKind.SAME, LineKind.MOVED_HERE) and row.new is not None:
            sign, style = ("  ", "dim") if row.kind is LineKind.SAME else (f"{bar}>", "hunk")
            return wrapped(row, sign, style, after[row.new])
        lines: list[Line] = []
        if row.old is not None:
            lines += wrapped(row._replace(new=None), f"{bar}-", "del bad", before[row.old])
        if row.new is not None:
            lines += wrapped(row._replace(old=None), f"{bar}+", "add good", after[row.new])
        return lines

    return _draw(diff, drawn, view, indent, width)


def side_by_side(compared: SourceDiff, width: int, view: DiffView) -> DrawnDiff:
    """Return two columns in `width` cells: the old side left, the new side right; long lines are cut."""
    before, after, diff, _ = compared
    digits = len(str(max(len(before), len(after))))
    half = (width - 3) // 2

    def side(source: Sequence[Line], place: int | None, sign: str, gutter: str, fill: str = "dim") -> Line:
        if place is None:
            return (Span(" " * half),)
        return _half(Span(f"{number(place, digits)}{sign}", gutter), source[place], half, fill)

    def drawn(row: DiffRow, bar: str) -> list[Line]:
        error = "E" if _is_error(row, view) else " "
        match row.kind:
            case LineKind.SAME:
                style = "dim error-line" if _is_chosen(row, view) else "dim"
                left = side(before, row.old, "   ", "dim")
                right = side(after, row.new, f" {error} ", style)
            case LineKind.MOVED_HERE:
                left = (Span(f"{number(row.old, digits)}{bar}> ".ljust(half), "hunk"),)
                right = side(after, row.new, f"{bar}>{error}", "hunk")
            case _:
                left = side(before, row.old, f"{bar}- ", "del bad", "del")
                right = side(after, row.new, f"{bar}+{error}", "add good", "add")
        return [(*left, Span(" │ ", "dim"), *right)]

    return _draw(diff, drawn, view, digits + 3, width)


def _is_error(row: DiffRow, view: DiffView) -> bool:
    return row.new is not None and row.new + 1 in view.errors


def _is_chosen(row: DiffRow, view: DiffView) -> bool:
    return row.new is not None and row.new + 1 == view.chosen


def _draw(
    diff: Diff, drawn: Callable[[DiffRow, str], list[Line]], view: DiffView, indent: int, width: int
) -> DrawnDiff:
    """Draw all hunks, each row as `drawn(row, bar)` draws it, with the folds between them."""
    lines: list[Line] = []
    hunks: list[int] = []
    folds: dict[int, int] = {}
    chosen: int | None = None

    def draw_rows(rows: Sequence[DiffRow], bar: str) -> None:
        nonlocal chosen
        for row in rows:
            chosen = len(lines) if _is_chosen(row, view) else chosen
            lines.extend(drawn(row, bar))

    for place, (folded, hunk) in enumerate(diff.parts()):
        if place in view.opened or any(_is_chosen(row, view) for row in folded):
            draw_rows(folded, " ")
        elif folded:
            folds[len(lines)] = place
            hint = " (enter opens them)" if place in adjacent_folds(view.hunk) else ""
            lines.append(_note(skipped_words(len(folded)) + hint, indent, width))
        bar = CURRENT if place == view.hunk and len(diff.hunks) > 1 else " "
        for kind, stretch in stretches(hunk):
            if kind is not LineKind.SAME and len(hunks) == place:
                hunks.append(len(lines))
            if kind is LineKind.MOVED_AWAY:
                lines.append(_note(moved_words(stretch), indent, width))
            else:
                draw_rows(stretch, bar)
    return DrawnDiff(lines, hunks, folds, chosen)


def adjacent_folds(hunk: int) -> tuple[int, int]:
    """Return the folds before and after a hunk."""
    return hunk, hunk + 1


def enclosing_function(source: str, line: int) -> str:
    """Return the name of the function around a line (0-based) of a source; empty if there is none."""
    for text in reversed(source_lines(source)[: line + 1]):
        definition = DEFINITION.match(text)
        if definition:
            return definition[1]
    return ""


def _note(words: str, indent: int, width: int) -> Line:
    return (Span(beginning(f"{'...':<{indent}}{words}", width), "hunk"),)


def _half(gutter: Span, text: Line, width: int, fill: str) -> Line:
    """One side of a row in `width` cells; `fill` is the style behind the text."""
    room = max(width - len(gutter.text), 1)
    end = ELLIPSIS if cells(text) > room else ""
    room -= len(end)
    spans = [gutter]
    for span in text:
        head = beginning(span.text, room)
        spans.append(Span(head, span.style))
        room -= cells([spans[-1]])
        if head != span.text:
            break
    return (*spans, Span(end + " " * room, fill))
