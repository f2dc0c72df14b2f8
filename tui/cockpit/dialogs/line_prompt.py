"""The line at the bottom: `:` takes a command, `/` finds or filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os.path import commonprefix
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from sessions.events.refusals import MOST_CHARACTERS
from tui.cockpit.dialogs.layers import ClosesOnce

SHOWN_COMPLETIONS = 12


class LinePrompt(ClosesOnce, ModalScreen[str | None]):
    """Asks for one line; gives it, or `None` if the person left with escape.

    `changed` is called with each change and returns words about it, `complete` returns the words that can come last. Where no
    words can come, the line is under `about`.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "cancel", "cancel", id="prompt.cancel", priority=True),
        Binding("tab", "complete", "complete", id="prompt.complete", priority=True),
    ]
    PALETTE = "\0palette"
    """What an empty line gives at `tab`: the palette is wanted."""

    def __init__(
        self,
        sign: str,
        *,
        text: str = "",
        about: str = "",
        changed: Callable[[str], str] | None = None,
        complete: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        super().__init__()
        self._sign = sign
        self._text = text
        self._about = about
        self._changed = changed
        self._complete = complete

    def compose(self) -> ComposeResult:
        with Vertical(id="prompt"):
            yield Static(self._about, id="about", markup=False)
            with Horizontal(id="typed"):
                yield Static(self._sign, id="sign", markup=False)
                yield Input(self._text, max_length=MOST_CHARACTERS, id="line", select_on_focus=False)

    @on(Input.Changed)
    def describe(self, event: Input.Changed) -> None:
        """Show what the line would do, or how it can go on."""
        words = self._changed(event.value) if self._changed is not None else ""
        if self._complete is not None:
            names = self._complete(event.value)
            more = " ..." if len(names) > SHOWN_COMPLETIONS else ""
            words = "  ".join(names[:SHOWN_COMPLETIONS]) + more
        self.query_one("#about", Static).update(words or self._about)

    @on(Input.Submitted)
    def submit(self, event: Input.Submitted) -> None:
        """Enter gives the line."""
        self.dismiss(event.value.strip())

    def action_complete(self) -> None:
        """Complete the last word as far as it is certain; on an empty line ask for the palette."""
        line = self.query_one(Input)
        if self._complete is None:
            return
        if not line.value:
            self.dismiss(self.PALETTE)
            return
        names = self._complete(line.value)
        head, space, last = line.value.rpartition(" ")
        common = commonprefix(list(names))  # noqa: RUF071 -- words, not paths
        if len(common) > len(last) or len(names) == 1:
            line.value = f"{head}{space}{common}" + (" " if len(names) == 1 else "")
            line.cursor_position = len(line.value)

    def action_cancel(self) -> None:
        """Leave; nothing happens."""
        self.dismiss(None)
