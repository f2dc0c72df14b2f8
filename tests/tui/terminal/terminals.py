"""Runs Python code in a pseudo terminal; the received bytes are the bytes that SSH would carry."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from tests.support.waiting import LIMIT_S, check_time

TERMINAL_VARIABLES = frozenset({"COLUMNS", "LINES", "NO_COLOR", "TMUX"})
"""Variables that the program in the new terminal must not inherit."""


class Terminal:
    """Test's side of a program's terminal."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self.descriptor = descriptor
        self.process = process
        self.received = b""

    def read(self, seconds: float) -> bytes:
        """Return the bytes that arrive within this number of seconds."""
        start = len(self.received)
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0:
            if not self._read_once(remaining):
                break
        return self.received[start:]

    def until(self, condition: Callable[[bytes], bool], awaited: str) -> None:
        """Read until the condition holds for all received bytes."""
        limit = time.monotonic() + LIMIT_S
        while not condition(self.received):
            check_time(limit, awaited, self.tail)
            if not self._read_once(0.1) and not condition(self.received):
                raise AssertionError(f"the program ended before {awaited}\n{self.tail()}")

    def tail(self) -> str:
        """Return the last bytes that arrived, for a failure of a test."""
        return repr(self.received[-2000:])

    def _read_once(self, seconds: float) -> bool:
        """Read once; returns `False` if the program closed its side."""
        ready, _, _ = select.select([self.descriptor], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.descriptor, 1 << 16)
        except OSError:
            return False
        self.received += data
        return bool(data)

    def press(self, keys: str) -> None:
        os.write(self.descriptor, keys.encode())

    def hang_up(self) -> None:
        """Close the test's side, as a lost connection does."""
        os.close(self.descriptor)
        self.descriptor = -1

    def ends(self) -> int:
        """Read until the program ends and return its exit status."""
        limit = time.monotonic() + LIMIT_S
        while self.process.poll() is None:
            check_time(limit, "the end of the program", self.tail)
            self._read_once(0.1)
        self.read(0.1)
        return self.process.wait()


@contextmanager
def terminal(
    code: str, *, size: tuple[int, int], environ: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Run Python code in a terminal of (columns, rows)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    # Exported sizes (COLUMNS, LINES) would take precedence over the size of this terminal.
    inherited = {name: value for name, value in os.environ.items() if name not in TERMINAL_VARIABLES}
    env = {**inherited, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environ or {})}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
    )
    os.close(slave)
    screen = Terminal(master, process)
    try:
        yield screen
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if screen.descriptor >= 0:
            os.close(screen.descriptor)
