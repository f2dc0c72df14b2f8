"""The last line: keys that do something here and now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.screen import Screen

from tui.cockpit.draw.lines import EMPTY, Line, Span, cells
from tui.cockpit.widgets.bar import Bar

FIRST = ("app.help", "screen.back", "app.quit")
"""Names of the keys at the start: help and the ways out always have room."""
LAST = ("screen.pause", "replay.play", "steer.", "screen.", "replay.", "app.")
"""Starts of the names of keys that screens share; they come after a screen's own keys, in this order."""


class KeyHint(NamedTuple):
    """A key and what it does."""

    name: str
    """The binding's."""
    key: str
    words: str
    action: str


def key_line(hints: Sequence[KeyHint], width: int) -> Line:
    """Return as many hints as fit whole; what is left out is behind `?`."""
    shown: Line = EMPTY
    for hint in sorted(hints, key=_rank):
        longer = *shown, Span(f" {hint.key}", "key"), Span(f" {hint.words} ", "dim")
        if cells(longer) > width:
            break
        shown = longer
    return shown


def _rank(hint: KeyHint) -> int:
    if hint.name in FIRST:
        return 0
    return 1 + next((place for place, start in enumerate(LAST, 1) if hint.name.startswith(start)), 0)


def active_hints(screen: Screen[object], *, hidden: bool = False) -> list[KeyHint]:
    """Return the named bindings that do something now, those nearest to the focus first; with `hidden` all of them."""
    hints: dict[str, KeyHint] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        if binding.id is None or not active.enabled or not (binding.show or hidden):
            continue
        key = screen.app.get_key_display(binding)
        before = hints.get(binding.id)
        if before is not None and key not in before.key.split():
            key = f"{before.key} {key}"
        if before is None or hidden:
            hints[binding.id] = KeyHint(binding.id, key, binding.description, binding.action)
    return list(hints.values())


class KeyBar(Bar):
    """Shows the bindings that are shown and enabled.

    One widget: Textual's `Footer` has one for each key, and making them takes as long as the rest of a screen's opening.
    """

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._redraw)
        self._redraw(self.screen)

    def on_resize(self, event: events.Resize) -> None:
        self._redraw(self.screen)

    def _redraw(self, screen: Screen[object]) -> None:
        self.show(key_line(active_hints(screen), self.size.width))
