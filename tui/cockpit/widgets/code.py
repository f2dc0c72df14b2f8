"""A candidate's source, or the difference between two candidates."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events

from tui.cockpit.diffing import LONGEST_LINES, compare, copied, side_by_side, unified
from tui.cockpit.highlighting import highlighted, plain_rows
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
`d` turns between code and diff, `[` `]` walk the attempts, `e` goes to the
lines of the error, `z` gives the pane the whole screen, `h` `l` scroll sideways.

In a diff `-` is removed, `+` added, and the changed words of a line that stands
in both are marked. `>` is a moved line: its old number, then its new one; its
old place says where it went. `{` `}` go to the hunk before and to the next one,
`<` `>` choose what the attempt is compared with, `s` puts the diff in one
column or two.
"""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._side: Side | None = None
        self._other: Side | None = None
        self._columns: bool | None = None
        self._marked: int | None = None
        self._missing = ""
        self._growing = False
        self._hunk = 0
        self._hunks: list[int] = []
        """Line of the first change of each hunk."""

    @property
    def two_columns(self) -> bool:
        """Whether a diff stands in two columns now."""
        return self._columns if self._columns is not None else self.size.width >= SIDE_BY_SIDE_CELLS

    def toggle_columns(self) -> None:
        """The person chooses one column or two."""
        self._columns = not self.two_columns
        self._draw()

    def show_code(
        self, side: Side | None, *, missing: str, marked_line: int | None = None, growing: bool = False
    ) -> None:
        """Show a source; `missing` says why there is none. A growing source is plain, and its end is followed."""
        self._show(side, None, marked_line, missing, growing=growing)

    def show_diff(self, old: Side | None, new: Side | None, *, missing: str) -> None:
        """Show what changed; `missing` says why nothing can be compared."""
        if old is None or new is None:
            self._show(None, None, None, missing)
        else:
            self._show(new, old, None, missing)

    def _show(
        self,
        side: Side | None,
        other: Side | None,
        marked: int | None,
        missing: str,
        *,
        growing: bool = False,
    ) -> None:
        wanted = (side, other, marked, missing, growing)
        if wanted == (self._side, self._other, self._marked, self._missing, self._growing) and self.lines:
            return
        elsewhere = (side and side.name, other and other.name) != (
            self._side and self._side.name,
            self._other and self._other.name,
        )
        begins = growing and (elsewhere or not self._growing)
        self._side, self._other, self._marked, self._missing, self._growing = wanted
        if elsewhere:
            self._hunk = 0
        self._draw()
        if begins or not growing:
            self.anchor(growing)
        if elsewhere and not growing:
            self.scroll_to(0, 0, animate=False)

    def go_to(self, number: int) -> None:
        """Scroll to a line of the source, 1-based."""
        self.show_line(number - 1)

    @property
    def has_hunks(self) -> bool:
        """True if there are hunks to go to."""
        return len(self._hunks) > 1

    def go_to_hunk(self, steps: int) -> None:
        """Go to a later hunk, or to one before if `steps` is negative."""
        self._hunk = min(max(self._hunk + steps, 0), len(self._hunks) - 1)
        self._draw()
        self.show_line(self._hunks[self._hunk])

    def on_resize(self, event: events.Resize) -> None:
        """Two columns, and the mark of a line, are as wide as the pane."""
        if self._other is not None or self._marked is not None:
            self._draw()

    def _draw(self) -> None:
        self._hunks = []
        if self._side is None:
            self.show([line(self._missing, "dim")])
        elif self._other is None:
            self.show(self._code(self._side), copy_text=self._side.source)
        else:
            self._draw_diff(self._other, self._side)

    def _code(self, side: Side) -> list[Line]:
        rows = plain_rows(side.source) if self._growing else highlighted(side.source)
        digits = len(str(len(rows)))
        drawn: list[Line] = []
        for number, row in enumerate(rows, start=1):
            if number == self._marked:
                filled = max(0, self.scrollable_content_region.width - digits - 3 - cells(row))
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

    def _draw_diff(self, old: Side, new: Side) -> None:
        diff = compare(old.source, new.source)
        if diff is None:
            command = f"git diff {old.commit or old.name} {new.commit or new.name} -- kernel.py"
            words = f"Longer than {LONGEST_LINES} lines: compare in the store with"
            self.show([line(words), line(f"  {command}", "key")], copy_text=command)
            return
        if not diff.hunks:
            self.show([line("Both sides are the same.", "dim")])
            return
        width = self.scrollable_content_region.width
        if self.two_columns:
            drawn = side_by_side(old.source, new.source, diff, width, current=self._hunk)
        else:
            drawn = unified(old.source, new.source, diff, width, current=self._hunk)
        self._hunks = drawn.hunks
        self.show([*drawn.lines, EMPTY], copy_text=copied(old.source, new.source, diff))

    @property
    def summary(self) -> str:
        """`+12 -3  hunk 1 of 2` of the diff that stands there, or the number of lines of the code."""
        if self._side is None:
            return ""
        if self._other is None:
            return f"{len(self.lines)} lines" + (" so far" if self._growing else "")
        diff = compare(self._other.source, self._side.source)
        if diff is None:
            return ""
        return diff.summary + (f"  hunk {self._hunk + 1} of {len(self._hunks)}" if self.has_hunks else "")
