"""Small screens over others: the reason of a decision, help, something that went wrong."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.cockpit.lines import Line, Span, line, wrap
from tui.cockpit.widgets.line_view import LineView

CLOSE: list[BindingType] = [Binding("escape,q,question_mark,enter", "close", "close", id="dialog.close")]


class ReasonDialog(ModalScreen[str | None]):
    """Asks why; gives the reason, or `None` when the person thought better of it."""

    CSS_PATH = "dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel", id="reason.cancel")]

    def __init__(self, attempt: str, *, accepted: bool, known: str = "", to_reflector: bool = False) -> None:
        super().__init__()
        self._to_reflector = to_reflector
        self._attempt = attempt
        self._accepted = accepted
        self._known = known
        """What else is known of how right it is."""

    def compose(self) -> ComposeResult:
        """A question and a line to answer it on."""
        word = "Accept" if self._accepted else "Reject"
        hint = "The reason is kept with the decision."
        if self._to_reflector and not self._accepted:
            hint = "The reason goes to the reflector."
        with Vertical(id="dialog"):
            yield Static(f"{word} {self._attempt}", id="question", markup=False)
            if self._known:
                yield Static(self._known, id="known", markup=False)
            yield Input(placeholder="why (may stay empty)", max_length=2000, id="why")
            yield Static(f"{hint}  enter: {word.lower()}, escape: cancel", id="hint", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter decides."""
        self.dismiss(event.value.strip())

    def action_cancel(self) -> None:
        """Nothing is decided."""
        self.dismiss(None)


class TextDialog(ModalScreen[None]):
    """Some lines of text in a window; any of the usual keys closes it."""

    CSS_PATH = "dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = CLOSE

    def __init__(self, title: str, paragraphs: list[Line | str]) -> None:
        super().__init__()
        self._title = title
        self._paragraphs = paragraphs

    def compose(self) -> ComposeResult:
        """The text, scrollable."""
        with Vertical(id="dialog", classes="text"):
            yield LineView(id="text")

    def on_mount(self) -> None:
        """Draw."""
        self.query_one("#dialog").border_title = self._title.replace("[", "\\[")
        self.query_one("#dialog").border_subtitle = "escape closes"
        self.call_after_refresh(self._draw)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap anew."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        view = self.query_one(LineView)
        width = view.scrollable_content_region.width
        lines: list[Line] = []
        for each in self._paragraphs:
            lines += [line(row) for row in wrap(each, width)] if isinstance(each, str) else [each]
        view.show(lines)
        view.focus()

    def action_close(self) -> None:
        """Close."""
        self.dismiss()


def help_lines(explained: str, keys: list[tuple[str, str]]) -> list[Line | str]:
    """What the focused pane is, and the keys that work now."""
    paragraphs: list[Line | str] = [*explained.rstrip("\n").split("\n"), ()]
    width = max((len(key) for key, _ in keys), default=0)
    paragraphs.append(line("keys that work here now", "head"))
    paragraphs += [(Span(f"  {key:<{width}}  ", "key"), Span(words)) for key, words in keys]
    return paragraphs
