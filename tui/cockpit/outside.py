"""What a person sees of the cockpit who looks elsewhere: the terminal's title, and a bell or a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

Notify = Literal["bell", "osc9", "off"]
SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"


class Outside:
    """Writes to the terminal only when something changed; `write` takes control sequences."""

    def __init__(self, write: Callable[[str], None], *, notify: Notify, tmux: bool) -> None:
        self._write = write
        self._notify = notify
        self._tmux = tmux
        self._title = ""
        self._waiting: frozenset[str] = frozenset()

    def show(self, session: str, waiting: frozenset[str]) -> None:
        """Put the session and the number of attempts that wait into the title; notify of each that is new."""
        title = f"wavedeck ! {len(waiting)} {session}" if waiting else f"wavedeck {session}".rstrip()
        if title != self._title:
            self._write(SAVE_TITLE if not self._title else "")
            self._title = title
            self._write(f"\x1b]2;{title}\a")
        new = sorted(waiting - self._waiting)
        self._waiting = waiting
        if new and self._notify == "bell":
            self._write("\a")
        elif new and self._notify == "osc9":
            words = f"{new[0]} waits for you" + (f", and {len(new) - 1} more" if len(new) > 1 else "")
            message = f"\x1b]9;wavedeck: {words}\a"
            if self._tmux:
                message = "\x1bPtmux;" + message.replace("\x1b", "\x1b\x1b") + "\x1b\\"
            self._write(message)

    def restore(self) -> None:
        """Give the terminal its own title back."""
        if self._title:
            self._write(RESTORE_TITLE)
            self._title = ""
