"""One line of text that repaints only when it changes."""

from __future__ import annotations

from rich.cells import cell_len
from textual.strip import Strip

from tui.cockpit.draw.lines import ELLIPSIS, EMPTY, Line, Span, plain, wrap_line
from tui.cockpit.widgets.palette import Styled


class Bar(Styled):
    """A line as high as it is: header, strip of attempts, tabs, time line."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.line: Line = EMPTY

    @property
    def text(self) -> str:
        """What stands there."""
        return plain(self.line)

    def show(self, line: Line) -> None:
        """Draw a line, unless it stands there already."""
        if line != self.line:
            self.line = line
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        shown = self.line if y == 0 else EMPTY
        if width > 0 and cell_len(plain(shown).rstrip(" ─")) > width:
            shown = (*wrap_line(shown, width - 1)[0], Span(ELLIPSIS, "dim"))
        return self.strip(shown, width=width)
