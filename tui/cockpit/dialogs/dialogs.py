"""Small screens over others: the reason of a decision, help, something that went wrong."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from sessions.events.refusals import MOST_CHARACTERS
from tui.cockpit.dialogs.layers import ClosesOnce
from tui.cockpit.draw.lines import Line, escaped, line, wrap
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.line_view import LineView

QUIT = Binding("q", "app.quit", "leave", id="app.quit")
"""Leaves the cockpit. A window hides the keys of the app, so each window without a line to type on has this key again."""


class ReasonDialog(ClosesOnce, ModalScreen[str | None]):
    """Asks why a person accepts or rejects an attempt; gives the reason, or `None` if the person thought better of it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel", id="reason.cancel")]

    def __init__(self, attempt: str, *, accepted: bool, follows: str, known: str = "") -> None:
        """`follows` says what the decision does, and who reads the reason; `known` how safe the verdict is."""
        super().__init__()
        self._word = "Accept" if accepted else "Reject"
        self._attempt = attempt
        self._follows = follows
        self._known = known

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(f"{self._word} {self._attempt}", id="question", markup=False)
            if self._known:
                yield Static(self._known, id="known", markup=False)
            yield Input(placeholder="why (may stay empty)", max_length=MOST_CHARACTERS, id="why")
            keys = f"enter: {self._word.lower()}   escape: cancel"
            yield Static(f"{self._follows}\n{keys}", id="hint", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())

    def action_cancel(self) -> None:
        self.dismiss(None)


class ConfirmDialog(ClosesOnce, ModalScreen[bool]):
    """Asks once before something that cannot be taken back."""

    ANSWERS: ClassVar[str] = "enter: yes   escape: no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "answer(True)", "yes", id="confirm.yes"),
        Binding("escape,n", "answer(False)", "no", id="confirm.no"),
        QUIT,
    ]

    def __init__(self, question: str, *, consequence: str) -> None:
        super().__init__()
        self._question = question
        self._consequence = consequence

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(self._question, id="question", markup=False)
            with VerticalScroll(id="consequence"):
                yield Static(self._consequence, markup=False)
            yield Static(self.ANSWERS, id="hint", markup=False)

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 -- an action's argument
        self.dismiss(answer)


class LateConfirmDialog(ConfirmDialog, inherit_bindings=False):
    """A question that comes by itself after a while: an `enter` for the screen below is no answer to it."""

    ANSWERS = "y: yes   n, escape: no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes", id="confirm.yes"),
        Binding("escape,n", "answer(False)", "no", id="confirm.no"),
        QUIT,
    ]


class TextDialog(ClosesOnce, ModalScreen[None]):
    """Some lines of text in a window; any of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter", "close", "close", id="dialog.close"),
        QUIT,
    ]

    def __init__(self, title: str, paragraphs: list[Line | str]) -> None:
        super().__init__()
        self._title = title
        self._paragraphs = paragraphs

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="text"):
            yield LineView(id="text")
            yield Bar(id="more")

    def on_mount(self) -> None:
        self.query_one("#dialog").border_title = escaped(self._title)
        self.query_one("#dialog").border_subtitle = "escape closes"
        self.query_one("#more", Bar).show(line("pgdn: more", "dim"))
        self.watch(self.query_one(LineView), "scroll_y", self._tell_more)
        self.call_after_refresh(self._draw)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    @on(LineView.Resized)
    def _tell_more(self) -> None:
        view = self.query_one(LineView)
        self.query_one("#more").visible = view.scroll_y < view.max_scroll_y

    def _draw(self) -> None:
        view = self.query_one(LineView)
        view.show(self.lines(view.scrollable_content_region.width))
        view.focus()

    def lines(self, width: int) -> list[Line]:
        """Return the text in lines of at most `width` cells."""
        lines: list[Line] = []
        for each in self._paragraphs:
            lines += [line(row) for row in wrap(each, width)] if isinstance(each, str) else [each]
        return lines

    def action_close(self) -> None:
        self.dismiss()
