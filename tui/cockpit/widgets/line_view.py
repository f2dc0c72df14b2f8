"""Many styled lines, scrolled, selected and copied; unchanged lines are never painted again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from tui.cockpit.draw.lines import ELLIPSIS, Line, Span, cells, plain
from tui.cockpit.widgets.palette import Styled
from tui.facts.vocabulary import counted


class LineView(ScrollView, Styled, can_focus=True):
    """Lines that somebody else made."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_down", "down", show=False, id="view.down"),
        Binding("k,up", "scroll_up", "up", show=False, id="view.up"),
        Binding("g,home", "scroll_home", "top", show=False, id="view.top"),
        Binding("G,end", "scroll_end", "end", show=False, id="view.end"),
        Binding("h", "scroll_left", "left", show=False, id="view.left"),
        Binding("l", "scroll_right", "right", show=False, id="view.right"),
        Binding("escape", "end_find", "end search", id="view.end_find", key_display="esc"),
    ]

    class Resized(Message):
        """The view has another size: lines that depend on it must be drawn again."""

    def __init__(self, *, help: str = "", id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        if help:
            self.HELP = help  # type: ignore[misc]  # Textual reads it from the instance
        self.lines: Sequence[Line] = ()
        self._copied = ""
        self._strips: dict[int, Strip] = {}
        self._sought: Sequence[str] = ()
        """Texts that are marked, in casefold."""
        self._match = -1
        """Line of the current match."""

    @property
    def text(self) -> str:
        """All lines, as plain text."""
        return "\n".join(plain(line) for line in self.lines)

    @property
    def copy_text(self) -> str:
        """Text that `y` copies: the source of the lines if there is one, else the lines."""
        return self._copied or self.text

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def show(self, lines: Sequence[Line], *, copy_text: str = "", width: int | None = None) -> None:
        """Draw these lines; those that stand where they stood are left alone.

        `width` spares measuring lines that are known to be no wider.
        """
        self._copied = copy_text
        old, self.lines = self.lines, lines
        for y, (before, after) in enumerate(zip_longest(old, lines)):
            if before != after:
                self._changed(y)
        if width is None:
            width = max((cells(line) for line in lines), default=0)
        size = Size(width, len(lines))
        if size != self.virtual_size:
            self.virtual_size = size

    def on_resize(self, event: events.Resize) -> None:
        self.post_message(self.Resized())

    def _changed(self, y: int) -> None:
        self._strips.pop(y, None)
        if 0 <= y - self.scroll_offset.y < self.size.height:
            self.refresh_line(y)

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        y += scroll_y
        width = self.size.width
        if y >= len(self.lines):
            return Strip.blank(width, self.rich_style)
        whole = self._whole(y)
        room = self.scrollable_content_region.width
        if 0 < room < whole.cell_length - scroll_x:
            more = Strip([Segment(ELLIPSIS, self.style_of("dim"))], 1)
            whole = Strip.join([whole.crop(0, scroll_x + room - 1), more])
        return whole.crop_extend(scroll_x, scroll_x + width, self.rich_style).apply_offsets(scroll_x, y)

    def _whole(self, y: int) -> Strip:
        line, selection = self.lines[y], self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is not None:
            start, end = span
            line = restyled(line, start, len(plain(line)) if end == -1 else end, "selected")
            return Strip(self.segments(line), cells(line))
        known = self._strips.get(y)
        if known is None:
            for sought in self._sought:
                line = with_matches(line, sought)
            if len(self._strips) > 2000:
                self._strips.clear()
            known = self._strips[y] = Strip(self.segments(line), cells(line))
        return known

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract(self.text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def find(self, text: str) -> str:
        """Mark a text, whatever its case, and go to its first line from here on; returns how often it is there."""
        self._seek((text,) if text else ())
        self._match = self.scroll_offset.y - 1
        if not text:
            return ""
        lines = self._matching_lines()
        if lines:
            self.go_to_match(1)
        return f"in {counted(len(lines), 'line')}"

    def find_words(self, words: str) -> bool:
        """Mark words, whatever their case, and go to where all are closest together; `False` if one is not there."""
        self._seek(words.split())
        latest: dict[str, int] = {}
        """Line of each word."""
        places: list[tuple[int, int]] = []
        """(lines between, first line) of each place with all words."""
        for y, line in enumerate(self.lines):
            text = plain(line).casefold()
            latest |= {word: y for word in self._sought if word in text}
            if latest and latest.keys() >= set(self._sought):
                first = min(latest.values())
                places.append((y - first, first))
        if places:
            self._match = min(places)[1]
            self.show_line(self._match)
        return bool(places)

    def _seek(self, texts: Iterable[str]) -> None:
        self._sought = [text.casefold() for text in texts]
        self._strips.clear()
        self.refresh()
        self.screen.refresh_bindings()

    def action_end_find(self) -> None:
        self.find("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape ends a search before it leaves the screen."""
        return bool(self._sought) if action == "end_find" else super().check_action(action, parameters)

    def go_to_match(self, direction: int) -> bool:
        """Go to the next line with the text that was found, or to the one before; `False` if there is none."""
        lines = self._matching_lines()
        later = (
            [y for y in lines if y > self._match] if direction > 0 else [y for y in lines if y < self._match]
        )
        if not later:
            return False
        self._match = later[0] if direction > 0 else later[-1]
        self.show_line(self._match)
        return True

    def _matching_lines(self) -> list[int]:
        texts = [plain(line).casefold() for line in self.lines] if self._sought else []
        return [y for y, text in enumerate(texts) if any(sought in text for sought in self._sought)]

    def show_line(self, y: int) -> None:
        """Scroll until a line is in the upper third of the window."""
        self.scroll_to(y=max(0, y - self.size.height // 3), animate=False)


def with_matches(line: Line, sought: str) -> Line:
    """Return a line with each place of a text (in casefold) marked."""
    text = plain(line).casefold()
    if len(text) != len(plain(line)):
        return line
    at = text.find(sought)
    while at >= 0:
        line = restyled(line, at, at + len(sought), "match")
        at = text.find(sought, at + len(sought))
    return line


def restyled(line: Line, start: int, stop: int, style: str) -> Line:
    """Return a line with a style laid over its characters from `start` to `stop`."""
    spans: list[Span] = []
    for span in line:
        first, last = (min(max(place, 0), len(span.text)) for place in (start, stop))
        parts = (span.text[:first], span.text[first:last], span.text[max(first, last) :])
        styles = (span.style, f"{span.style} {style}".strip(), span.style)
        spans += [Span(*part) for part in zip(parts, styles, strict=True) if part[0]]
        start, stop = start - len(span.text), stop - len(span.text)
    return tuple(spans)
