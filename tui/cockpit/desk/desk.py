"""What a screen may ask of the app: the only way from a screen to the session and to a person's commands."""

from __future__ import annotations

from typing import Protocol

from textual.message import Message

from sessions.home import Home
from tui.cockpit.desk.commanding import Commander, Host
from tui.cockpit.draw.lines import Span
from tui.cockpit.terminal.preferences import Preferences


class Desk(Host, Protocol):
    """The app, as screens see it. Where to go next is not asked here, but posted as a message (`messages`)."""

    commander: Commander
    """Sends decisions and commands."""
    home: Home
    preferences: Preferences

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

    def leave(self) -> None:
        """Leave the cockpit; engines go on."""
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
