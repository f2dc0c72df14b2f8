"""Screens above other screens, and keys in their order. Works around Textual 8.2.8, in this file alone.

`dismiss` closes whatever screen is on top. Textual counts the screen below the uppermost as visible even if the uppermost
hides it. Once such a screen changes, it asks for a whole repaint of itself and of the uppermost screen after every
message, for ever. A screen that opens is painted before it has lines, and a change of layout paints a screen twice that
was to be repainted. Textual hands a key to the focused widget before the key before it is carried out: keys that arrive
together would all go to the screen that the first of them leaves.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.messages import Update
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets._toast import ToastRack

from tui.cockpit.draw.lines import wrap

ROUNDS = 3
"""How often a `KeyPassed` follows a key: a key's action may post a message, and the message's handler another."""
LATE_S = 0.5
"""A key waits no longer for the one before: the `KeyPassed` of a widget that is gone never arrives."""
TOAST_EDGES = 3
"""Cells of a toast beside its text."""
T = TypeVar("T")
if TYPE_CHECKING:
    Base = Screen[Any]
else:
    Base = object  # Textual takes the CSS of the first base that is a screen


class KeyPassed(Message):
    """Goes the way of a key, from the focused widget to the app, and arrives after it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class LayeredApp(App[T]):
    """An app in which an opaque screen hides those below, and each key goes to the screen that the keys before it opened."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._typed: deque[events.Event] = deque()
        """Keys that wait until the key before them is carried out."""
        self._number = 0
        """Number of the last key that was passed on."""
        self._rounds = 0
        """How often it is still followed; 0: it is carried out."""
        self._seen_screen: Screen[object] | None = None

    async def on_event(self, event: events.Event) -> None:
        """Pass an event on; a key or a paste waits until the one before is carried out."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        self._typed.append(event)
        if self._rounds:
            self.set_timer(LATE_S, partial(self._pass_late, self._number))
        else:
            await self._pass_next()

    async def _pass_next(self) -> None:
        self._rounds = 0
        if self._typed:
            self._number, self._rounds, self._seen_screen = self._number + 1, ROUNDS, self.screen
            target = self.focused or self.screen
            await super().on_event(self._typed.popleft())
            self._follow(target)

    def _follow(self, target: Widget) -> None:
        target.post_message(KeyPassed(self._number))

    async def on_key_passed(self, message: KeyPassed) -> None:
        """Follow the key once more, through the screen that it opened, or pass the next key on."""
        if message.number != self._number or not self._rounds:
            return
        if self.screen is not self._seen_screen:
            self._rounds, self._seen_screen = ROUNDS, self.screen
        self._rounds -= 1
        if self._rounds:
            self._follow(self.focused or self.screen)
        else:
            await self._pass_next()

    def pop_screen(self) -> AwaitComplete:
        """Take the uppermost screen away. A `KeyPassed` of its widgets never arrives: a new one goes through the screen below."""
        if not isinstance(self.screen, ModalScreen):
            self.clear_notifications()  # they are about the screen that is left
        popped = super().pop_screen()
        if self._rounds:
            self._number, self._rounds, self._seen_screen = self._number + 1, ROUNDS, self.screen
            self._follow(self.focused or self.screen)
        return popped

    async def _pass_late(self, number: int) -> None:
        if number == self._number and self._rounds:
            await self._pass_next()

    def make_room(self, lines: int, message: str) -> None:
        """Take the oldest toasts away until the message fits into so many lines with the rest."""
        width = self.size.width - TOAST_EDGES
        toasts = list(self._notifications)
        while (
            toasts
            and sum(len(wrap(toast.message, width)) for toast in toasts) + len(wrap(message, width)) > lines
        ):
            oldest = toasts.pop(0)
            self.screen.query(
                f"#{ToastRack._toast_id(oldest)}"
            ).remove()  # else an empty line stays in its place
            self._unnotify(oldest)

    @property
    def _background_screens(self) -> list[Screen[object]]:
        hidden = bool(self._screen_stack) and self._screen_stack[-1].styles.background.a == 1
        return [] if hidden else super()._background_screens


class LayeredScreen(Screen[T]):
    """A screen that paints nothing before its lines have their width, and below a dialog only what changed."""

    _has_width = False

    def on_resize(self, event: events.Resize) -> None:
        """Paint from now on, after what a subclass draws."""
        if not self._has_width:
            self.call_after_refresh(self._begin_to_paint)

    def _begin_to_paint(self) -> None:
        self._has_width = True
        self.post_message(Update(self))

    def _compositor_refresh(self) -> None:
        if not self._has_width:
            self._dirty_widgets.clear()
            return
        if self._repaint_required:
            self._compositor.update_widgets({self})
        super()._compositor_refresh()
        self._repaint_required = False


class ClosesOnce(Base):
    """First base of a screen: a key that comes again before the next frame closes no other screen, and answers once."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close this screen with a result, unless another screen is on top."""
        if not self.is_active:
            return AwaitComplete.nothing()  # type: ignore[no-untyped-call,no-any-return]
        return super().dismiss(result)
