"""Keeps a screen below another screen from drawing the upper one again and again. Works around Textual 8.2.8, in this file alone.

Textual counts the screen below the uppermost as visible even if the uppermost hides it. Once such a screen changes, it
asks for a whole repaint of itself and of the uppermost screen after every message, for ever.
"""

from __future__ import annotations

from typing import TypeVar

from textual.app import App
from textual.screen import Screen

T = TypeVar("T")


class LayeredApp(App[T]):
    """An app in which an opaque screen hides those below."""

    @property
    def _background_screens(self) -> list[Screen[object]]:
        hidden = bool(self._screen_stack) and self._screen_stack[-1].styles.background.a == 1
        return [] if hidden else super()._background_screens


class LayeredScreen(Screen[T]):
    """A screen that, below a dialog, repaints only what changed."""

    def _compositor_refresh(self) -> None:
        super()._compositor_refresh()
        if self.app.screen is not self:
            self._repaint_required = False
