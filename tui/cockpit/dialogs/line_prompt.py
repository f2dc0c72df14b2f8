"""The line at the bottom: `:` takes a command, `/` finds or filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os.path import commonprefix
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from sessions.events.refusals import MOST_CHARACTERS
from tui.cockpit.dialogs.layers import ClosesOnce
from tui.cockpit.draw.lines import clean

ENTRIES = 12
"""Most entries of the list above the line."""
LINES_LEFT = 8
"""Lines of the screen below that stay in view."""


class LinePrompt(ClosesOnce, ModalScreen[str | None]):
    """Asks for one line; gives it, or `None` if the person left with escape.

    `changed` is called with each change and returns words about the line. `complete` returns the words that can come last,
    each with its meaning. `refusal` returns why a line is wrong: such a line stays. `history` are the lines before, to which
    each line is added.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "cancel", id="prompt.cancel", priority=True),
        Binding("ctrl+c", "cancel", "cancel", show=False, priority=True),
        Binding("tab", "complete", "complete", id="prompt.complete", priority=True),
        Binding("up", "earlier(1)", "line before", id="prompt.earlier", priority=True),
        Binding("down", "earlier(-1)", "line after", id="prompt.later", priority=True),
    ]

    def __init__(
        self,
        sign: str,
        *,
        text: str = "",
        changed: Callable[[str], str] = lambda _: "",
        complete: Callable[[str], Mapping[str, str]] | None = None,
        refusal: Callable[[str], str] = lambda _: "",
        history: list[str] | None = None,
    ) -> None:
        super().__init__()
        self._sign = sign
        self._text = text
        self._changed = changed
        self._complete = complete
        self._refusal = refusal
        self._history = history if history is not None else []
        self._back = 0
        """Number of lines gone back in the history."""
        self._draft = ""
        """The line before the person went back."""

    def compose(self) -> ComposeResult:
        with Vertical(id="prompt"):
            yield Static("", id="about")
            with Horizontal(id="typed"):
                yield Static(self._sign, id="sign", markup=False)
                yield Input(max_length=MOST_CHARACTERS, id="line", select_on_focus=False)

    def on_mount(self) -> None:
        self._put(self._text)
        self._describe(self._text)

    @on(Input.Changed)
    def follow(self, event: Input.Changed) -> None:
        """Show what the line would do, and how it can go on. The sign of a command is typed once."""
        if self._complete is not None and event.value.startswith(self._sign):
            self._put(event.value.lstrip(self._sign))
        else:
            self._describe(event.value)

    def _describe(self, text: str) -> None:
        entries = self._complete(text) if self._complete is not None else {}
        most = max(min(ENTRIES, self.app.size.height - LINES_LEFT), 1)
        width = max(map(len, entries), default=0)
        lines = [Content(clean(self._changed(text)))]
        for name, words in list(entries.items())[:most]:
            lines.append(Content.assemble((f"  {name:<{width}}  ", "$accent"), clean(words)))
        if len(entries) > most:
            lines.append(Content(f"  ... {len(entries) - most} more: type a letter"))
        self._show(*lines)

    def _show(self, *contents: Content) -> None:
        lines = [content for content in contents if content.plain]
        about = self.query_one("#about", Static)
        about.update(Content("\n").join(lines))
        about.display = bool(lines)

    @on(Input.Submitted)
    def submit(self, event: Input.Submitted) -> None:
        """Give the line, or say why it is wrong and leave it to be corrected."""
        text = event.value.strip()
        if text and text not in self._history[-1:]:
            self._history.append(text)
        self._back = 0
        refusal = self._refusal(text) if text else ""
        if refusal:
            self._show(Content.styled(clean(refusal), "$error"), Content(clean(self._changed(text))))
        else:
            self.dismiss(text)

    def action_complete(self) -> None:
        """Complete the last word as far as it is certain."""
        line = self.query_one(Input)
        if self._complete is None:
            return
        names = list(self._complete(line.value))
        head, space, last = line.value.rpartition(" ")
        common = commonprefix(names)  # noqa: RUF071 -- words, not paths
        if len(common) > len(last) or len(names) == 1:
            self._put(f"{head}{space}{common}" + (" " if len(names) == 1 else ""))

    def action_earlier(self, steps: int) -> None:
        """Go back in the history, or forward to the line that was being typed."""
        if not 0 <= self._back + steps <= len(self._history):
            return
        if not self._back:
            self._draft = self.query_one(Input).value
        self._back += steps
        self._put(self._history[-self._back] if self._back else self._draft)

    def _put(self, text: str) -> None:
        line = self.query_one(Input)
        line.value = text
        line.cursor_position = len(text)

    def action_leave(self) -> None:
        """Take back what was typed as a command, then leave the line."""
        if self._complete is not None and self.query_one(Input).value not in ("", self._text):
            self._put("")
        else:
            self.dismiss(None)

    def action_cancel(self) -> None:
        """Leave; nothing happens."""
        self.dismiss(None)


def ask_to_find(app: App[Any], find: Callable[[str], str], text: str = "") -> None:
    """Call `find` with each text that a person types on the bottom line, and with none if the person leaves with escape."""

    def answered(typed: str | None) -> None:
        if typed is None:
            find("")

    app.push_screen(LinePrompt("/", text=text, changed=find), answered)
