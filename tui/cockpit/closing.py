"""Screens that close once. Works around Textual 8.2.8, whose `dismiss` closes whatever screen is on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.await_complete import AwaitComplete

if TYPE_CHECKING:
    from textual.screen import Screen

    Base = Screen[Any]
else:
    Base = object  # Textual takes the CSS of the first base that is a screen


class ClosesOnce(Base):
    """First base of a screen: a key that comes again before the next frame closes no other screen, and answers once."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close this screen with a result, unless another screen is on top."""
        if not self.is_active:
            return AwaitComplete.nothing()  # type: ignore[no-untyped-call,no-any-return]
        return super().dismiss(result)
