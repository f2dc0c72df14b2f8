"""The terminal beside drawing: clipboard, mouse, title, notifications, pace of frames, and drawing in ASCII.

Reaches into Textual 8.2.8's driver, in this file alone.
"""

from __future__ import annotations

import base64
import os
import select
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TextIO

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter

from harness.wire.limits import memory_words

CLIPBOARD_BYTES = 74_000
"""What terminals and multiplexers take in one OSC 52 sequence, by the smallest common limit that programs use."""


class LastingOutput:
    """Output that a terminal may leave: then writing does nothing.

    An error would end the thread that writes, and the app would wait for that thread forever.
    """

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def write(self, text: str) -> None:
        """Write text."""
        with suppress(OSError):
            self._output.write(text)

    def flush(self) -> None:
        """Send what was written."""
        with suppress(OSError):
            self._output.flush()

    def fileno(self) -> int:
        """File descriptor of the output."""
        return self._output.fileno()


class TidyDriver(LinuxDriver):
    """Textual's driver for a real terminal, which leaves nothing of the cockpit behind."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._file: Any = LastingOutput(self._file)

    def run_input_thread(self) -> None:
        """Read keys until the terminal is gone; `is_gone` tells the app."""
        with suppress(OSError):
            super().run_input_thread()

    def stop_application_mode(self) -> None:
        """Give the screen back empty.

        tmux first shrinks a screen that has grown to its former size, and folds lines that are too long. The lines that
        no longer fit would then appear among the shell's own.
        """
        self.write("\x1b[H\x1b[2J")
        super().stop_application_mode()


def queued_writes(driver: Driver | None) -> int:
    """Writes that wait for the terminal to take them; 0 where that cannot be seen."""
    writer: Any = getattr(driver, "_writer_thread", None)
    return int(writer._queue.qsize()) if writer is not None else 0


def is_gone(driver: Driver | None) -> bool:
    """Whether the terminal hung up: it sends no keys and shows nothing any more."""
    if not isinstance(driver, TidyDriver) or not driver.input_tty:
        return False
    poll = select.poll()
    poll.register(driver.fileno, 0)
    return any(happened & (select.POLLHUP | select.POLLERR) for _, happened in poll.poll(0))


def set_mouse(driver: Driver | None, *, on: bool) -> None:
    """Ask the terminal for mouse events, or leave the mouse to it (its own selection works then)."""
    change: Any = getattr(driver, "_enable_mouse_support" if on else "_disable_mouse_support", None)
    if change is not None:
        # A driver that was started without a mouse ignores both methods.
        driver._mouse = True  # type: ignore[union-attr]
        change()


def copy(driver: Driver | None, text: str, *, tmux: bool) -> str:
    """Hand text to the terminal's clipboard, or to a file when it is too long; returns what was done, in words.

    A terminal does not answer whether it took the text, so no message may say "copied".
    """
    data = text.encode("utf-8", "replace")
    encoded = base64.b64encode(data).decode("ascii")
    if len(encoded) > CLIPBOARD_BYTES or driver is None:
        return f"{memory_words(len(data))} is too much for a terminal's clipboard: written to {to_file(data)}"
    sequence = f"\x1b]52;c;{encoded}\a"
    if tmux:
        # Passed through to the outer terminal where tmux allows it; tmux itself takes the plain one.
        driver.write("\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\")
    driver.write(sequence)
    return f"{memory_words(len(data))} sent to the terminal's clipboard"


def to_file(data: bytes) -> Path:
    """Put data in a new file of the person's own."""
    descriptor, name = tempfile.mkstemp(prefix="wavedeck-", suffix=".txt")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return Path(name)


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


SLOWEST_S = 1.0
LATE_S = 0.05
"""A frame this late means that something holds the loop: mostly a terminal that cannot take more."""
QUEUED = 2
"""Writes that wait for the terminal; a few more and Textual's writer blocks the loop (measured with 8.2.8)."""
RECOVER = 0.9


class Governor:
    """Doubles the time between frames when they pile up, and comes back slowly."""

    def __init__(self, period_s: float) -> None:
        self._wanted_s = period_s
        self.period_s = period_s
        self._due: float | None = None

    def want(self, period_s: float) -> None:
        """Another screen wants another pace; being held back lasts."""
        held_back = self.period_s / self._wanted_s
        self._wanted_s = period_s
        self.period_s = min(SLOWEST_S, period_s * held_back)

    def due(self, now: float) -> bool:
        """Whether it is time for a frame."""
        return self._due is None or now >= self._due

    def drew(self, now: float, *, queued: int) -> None:
        """A frame was made; `queued` writes wait for the terminal."""
        late = 0.0 if self._due is None else now - self._due
        if queued > QUEUED or late > LATE_S + self.period_s:
            self.period_s = min(SLOWEST_S, self.period_s * 2)
        else:
            self.period_s = max(self._wanted_s, self.period_s * RECOVER)
        self._due = now + self.period_s


SIGNS = str.maketrans(
    {
        **dict.fromkeys("─━╌┄╴╶▔▁", "-"),
        **dict.fromkeys("│┃▏▎▍▌▐▕▊▋", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰┏┓┗┛", "+"),
        **dict.fromkeys("▂▃", "."),
        **dict.fromkeys("▄▅", "="),
        **dict.fromkeys("▆▇█▀", "#"),
        "…": "~",
        "·": "-",
        "•": "*",
        "●": "*",
        "┊": ":",
        "▴": "^",
        "▾": "v",
        "→": ">",
        "←": "<",
        "⏎": "E",
        "\u2013": "-",
        "\u00d7": "x",
        "≤": "<",
        "≥": ">",
        "\u2019": "'",
        "“": '"',
        "”": '"',
    }
)


class AsciiOnly(LineFilter):
    """Replaces each character, cell by cell, so that nothing moves."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the same line in ASCII."""
        return [
            segment
            if segment.control or segment.text.isascii()
            else segment._replace(text=to_ascii(segment.text))
            for segment in segments
        ]


def to_ascii(text: str) -> str:
    """Return text in ASCII, in as many cells as before; `?` for a character without a likeness."""
    drawn = text.translate(SIGNS)
    if drawn.isascii():
        return drawn
    return "".join(letter if letter.isascii() else "?" * cell_len(letter) for letter in drawn)
