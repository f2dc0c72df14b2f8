"""The steps of an attempt: a line for each, text below the open ones, the end followed while a model writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from tui.cockpit.data.search import lines_with
from tui.cockpit.data.steps import AttemptStep
from tui.cockpit.draw.lines import EMPTY, Line, Span, clean, fit, wrap_paragraph
from tui.cockpit.widgets.line_view import LineView

INDENT = 3
NAME_CELLS = 11


@dataclass(slots=True)
class WrappedText:
    """The lines of a text. Only the paragraph at its end is wrapped again when the text grows."""

    text: str = ""
    settled: str = ""
    """The text up to the last line end."""
    lines: list[Line] = field(default_factory=list)
    """The lines of `settled`."""
    open_lines: list[Line] = field(default_factory=list)
    """The lines of the paragraph that may still grow."""

    def grow(self, text: str, style: str, width: int) -> None:
        """Take the text as it is now."""
        if text == self.text:
            return
        if not text.startswith(self.settled):
            self.settled, self.lines = "", []
        self.text = text
        at = text.rfind("\n") + 1
        if at > len(self.settled):
            added = clean(text[len(self.settled) : at - 1])
            for paragraph in added.split("\n"):
                self.lines += _wrapped(paragraph, style, width)
            self.settled = text[:at]
        rest = clean(text[at:])
        self.open_lines = _wrapped(rest, style, width) if rest else []


def _wrapped(text: str, style: str, width: int) -> list[Line]:
    """Rows below the first keep the indentation of a paragraph, so that quoted code keeps its shape."""
    room = width - INDENT
    indent = min(len(text) - len(text.lstrip(" ")), room // 2)
    rows = wrap_paragraph(text[indent:], room - indent)
    return [(Span(" " * (INDENT + indent) + row, style),) if row else EMPTY for row in rows]


class StepsView(LineView):
    """Follows the end of a growing attempt; scrolling up holds, `G` or `f` follows again."""

    HELP = """\
The steps of this attempt in their order. A call of a model has a line with
its time, tokens and money; below it are its reasoning, its plan and its code.
`j` `k` go to the next step or through a long text, `enter` opens or folds a
step. Code is shown in the code pane alone: its step is one line, and `enter`
goes there. New words are followed; scroll up to hold the text still.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "step(1)", "down", show=False, id="steps.down"),
        Binding("k,up", "step(-1)", "up", show=False, id="steps.up"),
        Binding("enter", "unfold", "open", show=False, id="steps.unfold"),
        Binding("f,G,end", "follow", "follow", show=False, id="steps.follow"),
    ]

    class Chosen(Message):
        """A person pressed enter on a step that another pane shows."""

        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._steps: Sequence[AttemptStep] = ()
        self._texts: dict[str, WrappedText] = {}
        self._width = 0
        self._toggled: set[str] = set()
        """Keys of the steps that a person opened or folded."""
        self._cursor = ""
        """Key of the step under the cursor; empty: the last one."""
        self._heads: dict[str, int] = {}
        """Line of each step that can be under the cursor."""

    @property
    def following(self) -> bool:
        """True if new words scroll the text."""
        return not self._anchor_released

    def on_mount(self) -> None:
        self.anchor()

    def on_resize(self, event: events.Resize) -> None:
        if self.scrollable_content_region.width != self._width:
            self.show_steps(self._steps)

    def on_focus(self) -> None:
        self._draw()

    def on_blur(self) -> None:
        self._draw()

    def show_steps(self, steps: Sequence[AttemptStep]) -> None:
        """Show the steps so far; only text that grew is wrapped."""
        width = self.scrollable_content_region.width
        if width != self._width:
            self._texts.clear()
            self._width = width
        self._steps = steps
        self._draw()

    def restart(self, *, follows: bool) -> None:
        """Begin with another attempt: at its end if it grows, else at its start."""
        self._cursor = ""
        self.anchor(follows)
        if follows:
            self.scroll_end(animate=False)
        else:
            self.scroll_home(animate=False)

    def _is_open(self, step: AttemptStep) -> bool:
        return bool(step.text) and step.is_open != (step.key in self._toggled)

    def _draw(self) -> None:
        width = self._width
        if not width:
            return
        texts: dict[str, WrappedText] = {}
        heads: dict[str, int] = {}
        lines: list[Line] = []
        current = self._current()
        for step in self._steps:
            if step.is_call and lines:
                lines.append(EMPTY)
            if not step.is_call:
                heads[step.key] = len(lines)
            lines.append(self._head(step, current))
            if self._is_open(step):
                text = texts[step.key] = self._texts.get(step.key) or WrappedText()
                text.grow(step.text, "reasoning" if step.name == "reasoning" else "", width)
                lines += text.lines
                lines += text.open_lines
        self._texts, self._heads = texts, heads
        copied = "\n\n".join(step.text or f"{step.name}: {step.facts}" for step in self._steps)
        self.show(lines, copy_text=copied, width=width)

    def _current(self) -> str:
        keys = [step.key for step in self._steps if not step.is_call]
        return self._cursor if self._cursor in keys else (keys[-1] if keys else "")

    def _head(self, step: AttemptStep, current: str) -> Line:
        if step.is_call:
            text = f" {step.name}  {step.facts} "
            return (Span(fit(text, self._width) if cell_len(text) > self._width else text, "rule"),)
        mark = Span("> " if step.key == current and self.has_focus else "  ", "key")
        facts = step.facts
        if step.text and not self._is_open(step):
            facts = f'{facts}  "{" ".join(clean(step.text[:400]).split())}"'
        room = max(self._width - NAME_CELLS - 2, 1)
        style = step.style or "dim"
        if cell_len(facts) > room:
            facts = fit(facts, room)
        return mark, Span(f"{step.name:<{NAME_CELLS}}"), Span(facts, style)

    def action_step(self, direction: int) -> None:
        """Go to the next step if it is in sight, else scroll by a line."""
        self.release_anchor()
        keys = list(self._heads)
        current = self._current()
        place = keys.index(current) + direction if current in keys else -1
        top, height = self.scroll_offset.y, max(self.size.height - 1, 1)
        if 0 <= place < len(keys) and top <= self._heads[keys[place]] < top + height:
            self._cursor = keys[place]
            self._draw()
        else:
            self.scroll_to(y=top + direction, animate=False)

    def action_unfold(self) -> None:
        """Open or fold the step under the cursor; a step that another pane shows leads there."""
        step = next((step for step in self._steps if step.key == self._current()), None)
        if step is None:
            return
        if step.leads_to:
            self.post_message(self.Chosen(step.leads_to))
        elif step.text:
            self._cursor = step.key
            self._toggled ^= {step.key}
            self._draw()

    def on_click(self, event: events.Click) -> None:
        """A click on a step's line puts the cursor there; a second one opens or folds it."""
        line = event.y + self.scroll_offset.y
        key = next((key for key, place in self._heads.items() if place == line), None)
        if key is not None:
            self._cursor = key
            self._draw()
            if event.chain > 1:
                self.action_unfold()

    def find_words(self, words: str) -> bool:
        """Open the steps that have the words in one line, and go there; `False` if no step has them."""
        wanted = words.casefold().split()
        found = [step for step in self._steps if lines_with(clean(step.text).split("\n"), wanted)]
        if not found:
            return False
        self._toggled ^= {step.key for step in found if not self._is_open(step)}
        self.release_anchor()
        self._draw()
        return super().find_words(words)

    def action_follow(self) -> None:
        self._cursor = ""
        self.anchor()
        self.scroll_end(animate=False)
        self._draw()
