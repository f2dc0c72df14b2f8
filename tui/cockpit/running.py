"""Runs the cockpit until the person leaves or a signal ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from sessions.home import Home
from tui.cockpit.app import Cockpit, Mode
from tui.cockpit.terminal.themes import DARK, check_theme
from tui.cockpit.viewer import ExitNote
from tui.config import Preferences
from tui.print.plain import colours

if TYPE_CHECKING:
    from engine.process.launch import EngineStart

TERMINAL_THEME = "ansi-dark"
"""The terminal's own colours: the default where it has 16, or where `NO_COLOR` is set."""


def run_cockpit(
    *,
    home: Path,
    session: str | None,
    mode: Mode,
    readonly: bool = False,
    speed: float = 1.0,
    preferences: Preferences | None = None,
    engine: EngineStart | None = None,
) -> ExitNote:
    """
    Draw until the person leaves; returns the lines to print then.

    `session` is a whole name; `engine` is the start of its engine, if that has only begun.
    Raises `Complaint` for a theme or a key that does not exist.
    """
    few = bool(os.environ.get("NO_COLOR")) or colours(os.environ) == 16
    preferences = preferences or Preferences()
    theme = preferences.theme or (TERMINAL_THEME if few else DARK.name)
    check_theme(theme)
    if preferences.keys:
        # Imported here: it knows all screens, and the first frame needs Home alone.
        from tui.cockpit.keymap import check_keymap

        check_keymap(preferences.keys)
    app = Cockpit(
        Home(home),
        session=session,
        mode=mode,
        readonly=readonly,
        speed=speed,
        preferences=preferences,
        engine=engine,
    )
    app.theme = theme
    with ending_by_signal(app.exit):
        return app.run(mouse=preferences.mouse) or ExitNote()


GRACE_S = 0.7
"""After this time the process ends even if the app still waits for a terminal that takes no bytes."""
RESTORED = (
    b"\x1b[?2004l\x1b[?7h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
"""Ends all that the driver switched on: paste, mouse, keys, the second screen, focus; shows the cursor."""


class Signals:
    """The signals that end the cockpit."""

    ENDING = (signal.SIGTERM, signal.SIGHUP)

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._attributes = _attributes()
        self.received = 0
        """Number of the first signal; 0 for none."""

    def take(self, number: int, frame: FrameType | None = None) -> None:
        """Leave the app, with a limit of time."""
        if self.received:
            return
        self.received = number
        deadline = threading.Timer(GRACE_S, self._end_now)
        deadline.daemon = True
        deadline.start()
        asyncio.get_running_loop().call_soon_threadsafe(self._leave)

    def end(self) -> None:
        """After the app has ended: end by the signal, if one came."""
        if self.received:
            signal.signal(self.received, signal.SIG_DFL)
            os.kill(os.getpid(), self.received)

    def _end_now(self) -> None:
        """Restore the terminal as far as it takes bytes, without waiting for it."""
        with suppress(OSError, ValueError, termios.error):
            output = sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
            os.set_blocking(output, False)
            if self._attributes is not None:
                termios.tcsetattr(output, termios.TCSANOW, self._attributes)
            os.write(output, RESTORED)
        os._exit(128 + self.received)


@contextmanager
def ending_by_signal(leave: Callable[[], None]) -> Iterator[Signals]:
    """Let `leave` end the running app at SIGTERM and SIGHUP; the process then ends by that signal."""
    signals = Signals(leave)
    before = {number: signal.signal(number, signals.take) for number in Signals.ENDING}
    try:
        yield signals
    finally:
        signals.end()
        for number, handler in before.items():
            signal.signal(number, handler)


def _attributes() -> list[Any] | None:
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None
