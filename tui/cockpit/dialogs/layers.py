"""Screens above other screens. Works around Textual 8.2.8, in this file alone.

`dismiss` closes whatever screen is on top. Textual counts the screen below the uppermost as visible even if the uppermost
hides it. Once such a screen changes, it asks for a whole repaint of itself and of the uppermost screen after every
message, for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from textual.app import App
from textual.await_complete import AwaitComplete
from textual.screen import Screen

T = TypeVar("T")
if TYPE_CHECKING:
    Base = Screen[Any]
else:
    Base = object  # Textual takes the CSS of the first base that is a screen


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


class ClosesOnce(Base):
    """First base of a screen: a key that comes again before the next frame closes no other screen, and answers once."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close this screen with a result, unless another screen is on top."""
        if not self.is_active:
            return AwaitComplete.nothing()  # type: ignore[no-untyped-call,no-any-return]
        return super().dismiss(result)
