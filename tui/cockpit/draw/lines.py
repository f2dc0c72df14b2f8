"""Styled text as plain data: what the pure selectors make and the widgets draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from tui.visible_text import replace_invisible

TAB = 4
ELLIPSIS = "…"
GAP = 2
"""Cells between the parts of a line."""


class Span(NamedTuple):
    """A run of text in one style."""

    text: str
    style: str = ""
    """Words of `tui.cockpit.widgets.palette`, with spaces between them: `good bold`."""


Line = tuple[Span, ...]
EMPTY: Line = ()


def clean(text: str) -> str:
    """Text that is safe to draw: tabs expanded, line ends made one kind, invisible characters replaced by U+FFFD."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\t" in text:
        text = "\n".join(line.expandtabs(TAB) for line in text.split("\n"))
    return replace_invisible(text, _replaced)


def _replaced(_char: str) -> str:
    return "\ufffd"


def line(text: str, style: str = "") -> Line:
    """One line in one style; line ends within become spaces."""
    return (Span(clean(text).replace("\n", " "), style),) if text else EMPTY


def escaped(text: str) -> str:
    """Return text that means itself in Textual's markup: in the title of a pane."""
    return text.replace("[", "\\[")


def plain(spans: Iterable[Span]) -> str:
    """The text alone."""
    return "".join(span.text for span in spans)


def cells(spans: Iterable[Span]) -> int:
    """Width in terminal cells."""
    return sum(cell_len(span.text) for span in spans)


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Text in exactly `width` cells: cut with an ellipsis, or filled with spaces."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + ELLIPSIS
    space = " " * (width - length)
    return space + text if right else text + space


def shorten(text: str, width: int) -> str:
    """Text in at most `width` cells; what is too much goes out of the middle, since names differ at their ends."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    return beginning(text, width - 1 - tail) + ELLIPSIS + beginning(text[::-1], tail)[::-1]


def beginning(text: str, width: int) -> str:
    """As many of the first characters as fit in `width` cells, with no blank in place of half a wide one."""
    used = 0
    for place, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return text[:place]
    return text


def wrap(text: str, width: int) -> list[str]:
    """Clean text in lines of at most `width` cells, broken at spaces where there are some."""
    width = max(width, 4)
    wrapped: list[str] = []
    for paragraph in text.split("\n"):
        wrapped += wrap_paragraph(paragraph, width)
    return wrapped


def wrap_paragraph(paragraph: str, width: int) -> list[str]:
    """`wrap` for text without line ends."""
    pieces: list[str] = []
    rest = paragraph
    while True:
        head, tail = cut(rest, width)
        if not tail:
            pieces.append(head)
            return pieces
        # A space at the very start is indentation, not a place to break.
        at = head.rfind(" ")
        if tail[0] != " " and at > 0 and head[:at].strip():
            tail = rest[at + 1 :]
            head = head[:at]
        pieces.append(head.rstrip(" "))
        rest = tail.lstrip(" ")
        if not rest:
            return pieces


def cut(text: str, width: int) -> tuple[str, str]:
    """The longest head that fits into `width` cells, and the rest."""
    if text.isascii():
        return text[:width], text[width:]
    if cell_len(text) <= width:
        return text, ""
    used = 0
    for index, character in enumerate(text):
        used += cell_len(character)
        if used > width and index:
            return text[:index], text[index:]
    return text, ""


def wrap_line(spans: Line, width: int) -> list[Line]:
    """A styled line folded at exactly `width` cells, styles kept."""
    rows: list[Line] = []
    row: list[Span] = []
    left = max(width, 4)
    for span in spans:
        text = span.text
        if len(text) <= left and text.isascii():
            row.append(span)
            left -= len(text)
            continue
        while text:
            if left <= 0:
                rows.append(tuple(row))
                row, left = [], max(width, 4)
            head, text = cut(text, left)
            row.append(Span(head, span.style))
            left -= cell_len(head)
            if text:
                left = 0
    rows.append(tuple(row))
    return rows


def wrap_phrases(phrases: Iterable[Span], width: int, gap: Span) -> list[Line]:
    """Return phrases in lines of at most `width` cells, broken between phrases and, if need be, at spaces."""
    rows: list[Line] = []
    for phrase in phrases:
        for part in wrap(clean(phrase.text), width) if cells([phrase]) > width else (phrase.text,):
            span = Span(part, phrase.style)
            if rows and cells((*rows[-1], gap, span)) <= width:
                rows[-1] = (*rows[-1], gap, span)
            else:
                rows.append((span,))
    return rows


def joined(parts: Sequence[Line], gap: Span = Span(" " * GAP)) -> Line:  # noqa: B008 -- a constant
    """Parts in one line with a gap between those that are not empty."""
    spans: list[Span] = []
    for part in parts:
        if part:
            spans += [gap, *part] if spans else part
    return tuple(spans)
