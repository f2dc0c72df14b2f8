"""What a screen may ask of the app: the only way from a screen to the session and to a person's commands."""

from __future__ import annotations

from typing import Any, Protocol

from textual.app import App
from textual.message import Message

from sessions.home import Home
from tui.cockpit.data.feed import Feed
from tui.cockpit.desk.commanding import Commander
from tui.cockpit.draw.lines import Span
from tui.cockpit.terminal.preferences import Preferences


class Desk(Protocol):
    """The app, as screens see it. Where to go next is not asked here, but posted as a message (`messages`)."""

    feed: Feed | None
    """The open session; `None` at Home."""
    commander: Commander
    """Sends decisions and commands."""
    readonly: bool
    home: Home
    preferences: Preferences

    @property
    def app(self) -> App[Any]:
        """The app itself, for dialogs and toasts."""
        ...

    def remarks(self) -> list[Span]:
        """Return what the header says of the cockpit itself: mouse off."""
        ...

    def frame(self) -> None:
        """Fold what is due and repaint it now."""
        ...

    def post_message(self, message: Message) -> bool:
        """Ask for another screen (`messages`)."""
        ...

    def action_explain(self) -> None:
        """Show the help of the focused pane."""
        ...

    def look_again(self) -> None:
        """Read events that another process wrote."""
        ...

    def reopen(self, session: str) -> None:
        """Open a session again, whose engine has started."""
        ...

    def leave(self) -> None:
        """Leave the cockpit; engines go on."""
        ...

    def refuse(self, title: str, why: str) -> None:
        """Show why something was not done."""
        ...

    def clock(self) -> float:
        """Return monotonic seconds."""
        ...

    def wall(self) -> float:
        """Return seconds since the epoch: now, the moment that a replay shows, or the end of a session that is over."""
        ...

    def present(self) -> float:
        """Return seconds since the epoch: now, or the moment that a replay shows."""
        ...
