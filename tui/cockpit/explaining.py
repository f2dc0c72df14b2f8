"""What `?` shows: the focused pane in words, and the keys that work now."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen
from textual.widget import Widget

from tui.cockpit.dialogs import help_lines
from tui.cockpit.lines import Line
from tui.cockpit.screens.base import SessionScreen
from tui.cockpit.widgets.key_bar import active_hints


def explanation(screen: Screen[Any]) -> tuple[str, list[Line | str]]:
    """Return title and lines of the help for the screen's focused pane."""
    words = [_help_of(screen)]
    if isinstance(screen, SessionScreen):
        words.append(screen.explained())
    panes = getattr(screen, "PANES", ())
    keys: list[tuple[str, str]] = []
    for hint in active_hints(screen, hidden=True):
        place = hint.name.removeprefix("pane.")
        keys.append((hint.key, panes[int(place) - 1][1] if place != hint.name else hint.words))
    focused = screen.focused
    name = focused.id if focused is not None and focused.id else "this screen"
    text = "\n".join(filter(None, words))
    return f"help: {name}", help_lines(text or "Wavedeck.", keys)


def _help_of(screen: Screen[Any]) -> str:
    node: Widget | None = screen.focused
    while node is not None and node is not screen:
        if node.HELP:
            return node.HELP
        node = node.parent if isinstance(node.parent, Widget) else None
    return ""
