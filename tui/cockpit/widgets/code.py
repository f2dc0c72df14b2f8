"""A candidate's source, or the difference between two candidates."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events

from tui.cockpit.diffing import LONGEST_LINES, compare, side_by_side, unified
from tui.cockpit.highlighting import highlighted
from tui.cockpit.lines import EMPTY, Line, Span, cells, line
from tui.cockpit.widgets.line_view import LineView

SIDE_BY_SIDE_CELLS = 120
"""From this width on a diff stands in two columns, unless the person chose otherwise."""


@dataclass(frozen=True, slots=True)
class Side:
    """One candidate."""

    name: str
    """`softmax#2/7`."""
    source: str
    commit: str | None = None


class CodePane(LineView):
    """Code with line numbers, or a diff. `marked_line` is the line that an error named."""

    HELP = """\
The candidate, or what changed from another attempt to it.
`d` turns between code and diff, `[` `]` walk the attempts, `{` `}` choose what
it is compared with, `s` puts a diff in one column or two, `e` goes to the line
of the error, `z` gives the pane the whole screen, `h` `l` scroll sideways.
"""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._side: Side | None = None
        self._other: Side | None = None
        self._columns: bool | None = None
        self._marked: int | None = None
        self._missing = ""

    @property
    def two_columns(self) -> bool:
        """Whether a diff stands in two columns now."""
        return self._columns if self._columns is not None else self.size.width >= SIDE_BY_SIDE_CELLS

    def toggle_columns(self) -> None:
        """The person chooses one column or two."""
        self._columns = not self.two_columns
        self._draw()

    def show_code(self, side: Side | None, *, marked_line: int | None, missing: str) -> None:
        """Show a source; `missing` says why there is none."""
        self._show(side, None, marked_line, missing)

    def show_diff(self, old: Side | None, new: Side | None, *, missing: str) -> None:
        """Show what changed; `missing` says why nothing can be compared."""
        if old is None or new is None:
            self._show(None, None, None, missing)
        else:
            self._show(new, old, None, missing)

    def _show(self, side: Side | None, other: Side | None, marked: int | None, missing: str) -> None:
        wanted = (side, other, marked, missing)
        if wanted == (self._side, self._other, self._marked, self._missing) and self.lines:
            return
        jump = marked is not None and marked != self._marked
        elsewhere = (side and side.name, other and other.name) != (
            self._side and self._side.name,
            self._other and self._other.name,
        )
        self._side, self._other, self._marked, self._missing = wanted
        self._draw()
        if elsewhere and not jump:
            self.scroll_to(0, 0, animate=False)

    def go_to(self, number: int) -> None:
        """Scroll to a line of the source, 1-based."""
        self.show_line(number - 1)

    def on_resize(self, event: events.Resize) -> None:
        """Two columns, and the mark of a line, are as wide as the pane."""
        if self._other is not None or self._marked is not None:
            self._draw()

    def _draw(self) -> None:
        if self._side is None:
            self.show([line(self._missing, "dim")])
        elif self._other is None:
            self.show(self._code(self._side), copy_text=self._side.source)
        else:
            lines = self._diff(self._other, self._side)
            self.show(lines, copy_text="\n".join("".join(span.text for span in row) for row in lines))

    def _code(self, side: Side) -> list[Line]:
        rows = highlighted(side.source)
        digits = len(str(len(rows)))
        drawn: list[Line] = []
        for number, row in enumerate(rows, start=1):
            if number == self._marked:
                filled = max(0, self.size.width - digits - 3 - cells(row))
                spans = tuple(Span(span.text, f"error-line {span.style}".strip()) for span in row)
                drawn.append(
                    (
                        Span(f"{number:>{digits}} > ", "error-line bad"),
                        *spans,
                        Span(" " * filled, "error-line"),
                    )
                )
            else:
                drawn.append((Span(f"{number:>{digits}}   ", "dim"), *row))
        return drawn

    def _diff(self, old: Side, new: Side) -> list[Line]:
        comparison = compare(old.source, new.source)
        if comparison is None:
            command = f"git diff {old.commit or old.name} {new.commit or new.name} -- kernel.py"
            return [
                line(f"Longer than {LONGEST_LINES} lines: compare in the store with"),
                line(f"  {command}", "key"),
            ]
        if not comparison.rows:
            return [line("Both sides are the same.", "dim")]
        if self.two_columns:
            body = side_by_side(old.source, new.source, comparison, self.scrollable_content_region.width)
        else:
            body = unified(old.source, new.source, comparison)
        return [*body, EMPTY]

    @property
    def summary(self) -> str:
        """`+12 -3` of the diff that stands there, or the number of lines of the code."""
        if self._side is None:
            return ""
        if self._other is None:
            return f"{len(highlighted(self._side.source))} lines"
        comparison = compare(self._other.source, self._side.source)
        return "" if comparison is None else f"+{comparison.added} -{comparison.removed}"
