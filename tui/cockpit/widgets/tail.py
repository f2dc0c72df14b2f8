"""Text that grows at its end: wrapped, followed until somebody scrolls up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType

from tui.cockpit.lines import Line, Span, clean, wrap_paragraph
from tui.cockpit.passages import Passage
from tui.cockpit.widgets.line_view import LineView


@dataclass(slots=True)
class Wrapped:
    """A passage's lines. Only the paragraph at its end is wrapped anew when it grows."""

    passage: Passage
    settled: str = ""
    """The text up to the last line end."""
    lines: list[Line] = field(default_factory=list)
    """Those of `settled`."""
    open_lines: list[Line] = field(default_factory=list)
    """Those of the paragraph that may still grow."""

    def grow(self, passage: Passage, width: int) -> None:
        """Take the passage's text as it is now."""
        if not passage.text.startswith(self.settled):
            self.settled, self.lines = "", []
        self.passage = passage
        at = passage.text.rfind("\n") + 1
        if at > len(self.settled):
            fresh = clean(passage.text[len(self.settled) : at - 1])
            for paragraph in fresh.split("\n"):
                self.lines += self._wrap(paragraph, width)
            self.settled = passage.text[:at]
        rest = clean(passage.text[at:])
        self.open_lines = self._wrap(rest, width) if rest else []

    def _wrap(self, text: str, width: int) -> list[Line]:
        style = self.passage.style
        if style == "rule":
            first, *rest = wrap_paragraph(text, width - 3)
            rule = "" if rest else "─" * (width - 4 - cell_len(first))
            head = f"── {first} {rule}".rstrip()
            return [(Span(head, style),), *((Span(f"   {row}", style),) for row in rest)]
        if style == "reasoning":
            return [(Span("│ ", "dim"), Span(row, style)) for row in wrap_paragraph(text, width - 2)]
        # What goes on in the next row stays below what it belongs to: code keeps its shape.
        indent = min(len(text) - len(text.lstrip(" ")), width // 2)
        rows = wrap_paragraph(text[indent:], width - indent)
        return [(Span(" " * indent + row, style),) if row else () for row in rows]


class Tail(LineView):
    """What a model says, as it says it. Follows the end; scrolling up holds, `G` or `f` follows again."""

    HELP = """\
The model's words in this attempt, call by call: its reasoning behind a bar,
then its reply. The code has a pane of its own; a line stands in its place.
New words are followed; scroll up to hold the text still, `f` or `G` follows
again.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f,G,end", "follow", "follow", show=False, id="words.follow"),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._passages: Sequence[Passage] = ()
        self._wrapped: dict[str, Wrapped] = {}
        self._width = 0

    @property
    def following(self) -> bool:
        """Whether new words scroll the text."""
        return not self._anchor_released

    def on_mount(self) -> None:
        """Follow from the start."""
        self.anchor()

    def on_resize(self, event: events.Resize) -> None:
        """Other width, other lines."""
        if self.scrollable_content_region.width != self._width:
            self.tell(self._passages)

    def tell(self, passages: Sequence[Passage]) -> None:
        """Show what was said so far."""
        width = self.scrollable_content_region.width
        if width != self._width:
            self._wrapped.clear()
            self._width = width
        self._passages = passages
        if not width:
            return
        wrapped: dict[str, Wrapped] = {}
        for passage in passages:
            known = self._wrapped.get(passage.key)
            if known is None:
                known = Wrapped(passage)
                known.grow(passage, width)
            elif known.passage != passage:
                known.grow(passage, width)
            wrapped[passage.key] = known
        self._wrapped = wrapped
        lines: list[Line] = []
        for each in wrapped.values():
            if lines and each.passage.style in ("rule", "", "hunk") and lines[-1]:
                lines.append(())
            lines += each.lines
            lines += each.open_lines
        self.show(lines, copy_text="\n\n".join(passage.text for passage in passages), width=width)

    def action_follow(self) -> None:
        """Go to the end and stay there."""
        self.anchor()
        self.scroll_end(animate=False)
