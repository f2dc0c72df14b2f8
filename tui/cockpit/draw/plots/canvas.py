"""A canvas of dots: braille characters with 2 x 4 dots a cell, or ASCII with one dot a cell."""

from __future__ import annotations

from itertools import groupby

from tui.cockpit.draw.lines import Line, Span

BRAILLE = 0x2800
BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot in a braille character, by row from the top and column (Unicode block U+2800)."""
SEVERAL = "*"


class Canvas:
    """Dots and marks at positions from (0, 0), lower left, to (1, 1), upper right; positions outside are not drawn."""

    def __init__(self, width: int, height: int, *, ascii: bool) -> None:
        self.width, self.height = max(width, 1), max(height, 1)
        self._ascii = ascii
        self._columns, self._rows = (1, 1) if ascii else (2, 4)
        """Dots in a cell."""
        self._dots: dict[tuple[int, int], tuple[int, str]] = {}
        self._marks: dict[tuple[int, int], Span] = {}

    def dot(self, x: float, y: float, style: str = "") -> None:
        """Draw one dot; the latest style of a cell counts for the whole cell."""
        if not (0 <= x <= 1 and 0 <= y <= 1):
            return
        column = round(x * (self.width * self._columns - 1))
        row = round((1 - y) * (self.height * self._rows - 1))
        cell = column // self._columns, row // self._rows
        bits, _ = self._dots.get(cell, (0, ""))
        self._dots[cell] = bits | BITS[row % self._rows][column % self._columns], style

    def segment(self, start: tuple[float, float], end: tuple[float, float], style: str = "") -> None:
        """Draw a straight line."""
        across = abs(end[0] - start[0]) * self.width * self._columns
        up = abs(end[1] - start[1]) * self.height * self._rows
        steps = max(1, round(2 * max(across, up)))
        for step in range(steps + 1):
            share = step / steps
            self.dot(start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]), style)

    def mark(self, x: float, y: float, character: str, style: str = "") -> None:
        """Put a character over the dots; a cell with different characters shows `SEVERAL`."""
        if 0 <= x <= 1 and 0 <= y <= 1:
            cell = self.column(x), round((1 - y) * (self.height - 1))
            before = self._marks.get(cell)
            several = before is not None and before.text != character
            self._marks[cell] = Span(SEVERAL if several else character, style)

    def column(self, x: float) -> int:
        """Return the cell column of a position."""
        return round(x * (self.width - 1))

    def centred(self, x: float) -> float:
        """Return the position of the dots that lie in the same cell as a mark at `x`."""
        return self.column(x) * self._columns / max(self.width * self._columns - 1, 1)

    def lines(self) -> list[Line]:
        """Return the rows, top first, each `width` cells wide."""
        return [self._line(row) for row in range(self.height)]

    def _line(self, row: int) -> Line:
        spans = [self._span((column, row)) for column in range(self.width)]
        return tuple(
            Span("".join(span.text for span in group), style)
            for style, group in groupby(spans, key=lambda span: span.style)
        )

    def _span(self, cell: tuple[int, int]) -> Span:
        if cell in self._marks:
            return self._marks[cell]
        if cell not in self._dots:
            return Span(" ")
        bits, style = self._dots[cell]
        return Span("." if self._ascii else chr(BRAILLE | bits), style)
