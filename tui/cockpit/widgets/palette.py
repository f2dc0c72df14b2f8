"""Style words, turned into terminal styles by the theme in `palette.tcss`."""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from tui.cockpit.draw.lines import Line, cells

WORDS = (
    "good",
    "bad",
    "warn",
    "busy",
    "dim",
    "key",
    "head",
    "rule",
    "link",
    "bold",
    "cursor",
    "marked",
    "match",
    "selected",
    "reasoning",
    "add",
    "del",
    "add-strong",
    "del-strong",
    "hunk",
    "error-line",
    "code-comment",
    "code-error",
    "code-keyword",
    "code-number",
    "code-string",
    "code-builtin",
    "code-name",
    "code-decorator",
)

COMPONENTS = {f"p--{word}" for word in WORDS}
"""What the app names as its `COMPONENT_CLASSES`. The styles are the same in every widget; worked out for each one, with every
change of a class or of the focus, they would be most of what the cockpit costs.
"""


class Styled(Widget):
    """A widget that draws lines in the palette's styles."""

    _styles_by_words: dict[str, Style] | None = None

    def notify_style_update(self) -> None:
        self._styles_by_words = None
        super().notify_style_update()

    def style_of(self, words: str) -> Style:
        """The style of some words, later ones over earlier ones, over the widget's own."""
        if self._styles_by_words is None:
            self._styles_by_words = {}
        known = self._styles_by_words.get(words)
        if known is None:
            known = self.rich_style
            for word in words.split():
                known += self.app.get_component_styles(f"p--{word}").partial_rich_style
            self._styles_by_words[words] = known
        return known

    def strip(self, line: Line, width: int) -> Strip:
        """A line as it is drawn, in exactly `width` cells."""
        drawn = Strip(self.segments(line), cells(line))
        return drawn.crop_extend(0, width, self.rich_style)

    def segments(self, line: Line) -> Iterable[Segment]:
        """Neighbours in one style are one segment: each costs an escape sequence."""
        text, style = "", None
        for span in line:
            of_span = self.style_of(span.style)
            if of_span == style:
                text += span.text
                continue
            if text:
                yield Segment(text, style)
            text, style = span.text, of_span
        if text:
            yield Segment(text, style)
