"""A candidate's source, or the difference between two sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, work
from textual.binding import Binding, BindingType

from tui.cockpit.data.sides import Side
from tui.cockpit.draw.diffing import (
    LONGEST_LINES,
    DiffView,
    SourceDiff,
    adjacent_folds,
    compare,
    enclosing_function,
    side_by_side,
    unified,
)
from tui.cockpit.draw.highlighting import highlighted, plain_rows
from tui.cockpit.draw.lines import EMPTY, Line, Span, cells, escaped, line, wrap_line
from tui.cockpit.widgets.line_view import LineView
from tui.facts.text_diff import LineKind

SIDE_BY_SIDE_CELLS = 120
"""From this width on a diff has two columns, unless the person chose otherwise."""


class CodePane(LineView):
    """Code with line numbers, or a diff. `E` marks the lines that the error names."""

    HELP = """\
The candidate, or what changed from another source to it.
`d` goes from the code to the diffs: to the base, to the task's timing
baseline, to the best attempt. `<` `>` choose another attempt as the other
side, `[` `]` walk the attempts. `E` marks a line that the error names, `e`
goes through them.

In a diff `-` is removed, `+` added, and the changed words of a line that is
on both sides are marked. `>` is a moved line: its old number, then its new
one; its old place says where it went. Long lines are folded. `{` `}` go to the hunk before and to
the next one, `enter` opens the unchanged lines around a hunk, `D` puts the
diff in one column or two, `z` gives the pane the whole screen, `h` `l` scroll
sideways.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "unfold", "unchanged lines", id="code.unfold", show=False)
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._side: Side | None = None
        self._other: Side | None = None
        self._columns: bool | None = None
        self._missing = ""
        self._growing = False
        self._rows: Sequence[Line] = ()
        """Lines of the source; without colours until the thread has made them."""
        self._compared: SourceDiff | None = None
        """The difference; `None` until the thread has made it, and of sources that are too long."""
        self._is_ready = True
        """False while a thread colours and compares."""
        self._view = DiffView()
        self._hunks: list[int] = []
        """Line of the first change of each hunk."""
        self._folds: dict[int, int] = {}
        self._chosen_place: int | None = None
        """Line on which the chosen error line is drawn."""

    @property
    def two_columns(self) -> bool:
        """True if a diff has two columns now."""
        return self._columns if self._columns is not None else self.size.width >= SIDE_BY_SIDE_CELLS

    @property
    def has_hunks(self) -> bool:
        """True if there are hunks to go to."""
        return bool(self._hunks)

    def toggle_columns(self) -> None:
        """The person chooses one column or two."""
        self._columns = not self.two_columns
        self._draw()

    def show_side(
        self,
        side: Side | None,
        other: Side | None = None,
        *,
        missing: str = "",
        errors: Sequence[int] = (),
        chosen: int | None = None,
        growing: bool = False,
    ) -> None:
        """Show a source, or what changed from `other` to it; `missing` says why there is none.

        A growing source is plain, and its end is followed.
        """
        wanted = (side, other, missing, growing)
        current = (self._side, self._other, self._missing, self._growing)
        view = self._view._replace(errors=frozenset(errors), chosen=chosen)
        if (wanted, view) == (current, self._view) and self.lines:
            return
        elsewhere = _names(side, other) != _names(self._side, self._other)
        begins = growing and (elsewhere or not self._growing)
        self._side, self._other, self._missing, self._growing = wanted
        self._view = view._replace(hunk=0, opened=frozenset()) if elsewhere else view
        if wanted != current:
            self._rows, self._compared = plain_rows(side.source) if side is not None else (), None
            self._is_ready = side is None or growing
            if side is not None and not growing:
                self._prepare(side, other)
        self._draw()
        if begins or not growing:
            self.anchor(growing)
        if elsewhere and not growing:
            self.scroll_to(0, 0, animate=False)

    @work(thread=True, group="code", exit_on_error=False, name="comparing")
    def _prepare(self, side: Side, other: Side | None) -> None:
        rows = highlighted(side.source)
        compared = compare(other.source, side.source) if other is not None else None
        self.app.call_from_thread(self._take, (side, other), rows, compared)

    def _take(
        self, sides: tuple[Side, Side | None], rows: Sequence[Line], compared: SourceDiff | None
    ) -> None:
        if sides != (self._side, self._other) or self._growing or not self.is_attached:
            return
        self._rows, self._compared, self._is_ready = rows, compared, True
        self._draw()
        self.go_to_error()
        self.screen.refresh_bindings()

    def go_to_error(self) -> None:
        """Scroll to the chosen error line."""
        if self._chosen_place is not None:
            self.show_line(self._chosen_place)

    def go_to_hunk(self, steps: int) -> None:
        """Go to a later hunk, or to an earlier one if `steps` is negative."""
        self._view = self._view._replace(hunk=min(max(self._view.hunk + steps, 0), len(self._hunks) - 1))
        self._draw()
        self.show_line(self._hunks[self._view.hunk])

    def action_unfold(self) -> None:
        if self._other is None or not self._hunks:
            return
        around = frozenset(adjacent_folds(self._view.hunk))
        folded = around & set(self._folds.values())
        opened = self._view.opened | folded if folded else self._view.opened - around
        self._view = self._view._replace(opened=opened)
        self._draw()

    def on_click(self, event: events.Click) -> None:
        fold = self._folds.get(event.y + self.scroll_offset.y)
        if fold is not None:
            self._view = self._view._replace(opened=self._view.opened | {fold})
            self._draw()

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        self._hunks, self._folds, self._chosen_place = [], {}, None
        if self._side is None:
            self.show([line(self._missing, "dim")])
        elif self._other is None or not self._is_ready:
            self.show(self._code(), copy_text=self._side.source)
        else:
            self._draw_diff(self._other, self._side)
        title = escaped(self._title)
        if self.border_title != title:
            self.border_title = title

    def _code(self) -> list[Line]:
        digits = len(str(len(self._rows)))
        view = self._view
        drawn: list[Line] = []
        room = max(self.scrollable_content_region.width - digits - 3, 8)
        rest = Span(" " * (digits + 3))
        for number, whole in enumerate(self._rows, start=1):
            row, *folded = wrap_line(whole, room)
            below = [(rest, *part) for part in folded]
            mark = "E" if number in view.errors else " "
            if number != view.chosen:
                drawn.append((Span(f"{number:>{digits}} {mark} ", "bad" if mark == "E" else "dim"), *row))
                drawn += below
                continue
            self._chosen_place = len(drawn)
            filled = max(0, room - cells(row))
            spans = tuple(Span(span.text, f"error-line {span.style}".strip()) for span in row)
            head = Span(f"{number:>{digits}} {mark} ", "error-line bad bold")
            drawn += [(head, *spans, Span(" " * filled, "error-line")), *below]
        return drawn

    def _draw_diff(self, old: Side, new: Side) -> None:
        if self._compared is None:
            command = f"git diff {old.commit or old.name} {new.commit or new.name} -- kernel.py"
            words = f"Longer than {LONGEST_LINES} lines: compare in the store with"
            self.show([line(words), line(f"  {command}", "key")], copy_text=command)
            return
        if not self._compared.diff.hunks:
            self.show([line("Both sides are the same.", "dim")])
            return
        draw = side_by_side if self.two_columns else unified
        width = self.scrollable_content_region.width
        drawn = draw(self._compared, width, self._view)
        self._hunks, self._folds, self._chosen_place = drawn.hunks, drawn.folds, drawn.chosen
        self.show([*drawn.lines, EMPTY], copy_text=self._compared.text, width=width)

    @property
    def _title(self) -> str:
        """`diff #3/5 -> #3/6   +14 -9   hunk 1 of 3   softmax_rows`, or `code #3/6   88 lines`."""
        if self._side is None:
            return "code"
        if self._other is None:
            so_far = " so far" if self._growing else ""
            return f"code {self._side.name}   {len(self._rows)} lines{so_far}"
        names = f"diff {self._other.name} -> {self._side.name}"
        if not self._is_ready:
            return f"{names}   comparing"
        if self._compared is None or not self._compared.diff.hunks:
            return names
        diff = self._compared.diff
        hunk = f"hunk {self._view.hunk + 1} of {len(self._hunks)}" if self.has_hunks else ""
        rows = [diff.rows[place] for place in diff.hunks[self._view.hunk]]
        changed = [row.new for row in rows if row.kind is not LineKind.SAME and row.new is not None]
        function = enclosing_function(self._side.source, changed[0]) if changed else ""
        return "   ".join(filter(None, (names, diff.summary, hunk, function)))


def _names(side: Side | None, against: Side | None) -> tuple[str, str]:
    return side.name if side is not None else "", against.name if against is not None else ""
