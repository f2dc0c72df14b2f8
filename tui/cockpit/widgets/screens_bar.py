"""The line below the header: the screens of a session with their keys, the current one in brackets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from textual import events
from textual.message import Message

from tui.cockpit.draw.lines import EMPTY, Line, Span, cells
from tui.cockpit.widgets.bar import Bar


class ScreenPlace(NamedTuple):
    """One screen of a session."""

    key: str
    title: str
    answers: str


PLACES = {
    "fleet": ScreenPlace("F", "Fleet", "what every instance does, and what needs you"),
    "agent": ScreenPlace(
        "A", "Agent", "what the instance under the cursor thinks, changed, and why it failed"
    ),
    "latency": ScreenPlace("L", "Latency", "times of the attempt under the cursor by case and GPU"),
    "review": ScreenPlace("V", "Review", "attempts that wait for your decision"),
    "report": ScreenPlace("R", "Report", "what is faster, by how much, and what it cost"),
}
"""Screens by the names that the action `go` and `[keys]` (`go.fleet`) use."""


class ScreensBar(Bar):
    """Shows the names; a click on a name asks for that screen."""

    class Chosen(Message):
        """A person clicked on the name of a screen."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._ends: dict[str, int] = {}
        """The cell behind the name of each screen, from left to right."""

    def show_screens(
        self,
        current: str,
        reachable: Collection[str],
        *,
        keys: Mapping[str, str],
        waiting: int,
        tail: Line = EMPTY,
    ) -> None:
        """Show the names, those that no key reaches from here dim; `waiting` attempts wait in Review, `tail` is at the right."""
        spans: list[Span] = []
        for name, (key, title, _) in PLACES.items():
            here = name == current
            open_, close = "[]" if here else "  "
            style = "bold key" if here else "" if name in reachable else "dim"
            key = keys.get(f"go.{name}", key)
            spans += [Span(f"{open_}{key} ", "bold key" if style != "dim" else "dim"), Span(title, style)]
            if name == "review" and waiting:
                spans.append(Span(f" {waiting}", "warn"))
            spans.append(Span(close, style))
            self._ends[name] = cells(spans)
        gap = self.size.width - cells(spans) - cells(tail) - 1
        self.show((*spans, Span(" " * gap), *tail) if tail and gap > 0 else tuple(spans))

    def on_click(self, event: events.Click) -> None:
        name = next((name for name, end in self._ends.items() if event.x < end), None)
        if name is not None:
            self.post_message(self.Chosen(name))
