"""Runs a shell in tmux: tests press keys and read the screen as a person does."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from engine.process import launch
from tests.support.command_line import ROOT, START
from tests.support.waiting import LIMIT_S, wait_until

POLL_S = 0.1
PROMPT = "shell>"


class Tmux:
    """One pane with a shell that knows `wavedeck`."""

    def __init__(self, size: tuple[int, int]) -> None:
        # A server of its own, without the settings of the person who runs the tests.
        self._server = ["tmux", "-L", f"wavedeck-{uuid.uuid4().hex[:8]}", "-f", "/dev/null"]
        width, height = map(str, size)
        self._tmux(
            "new-session", "-d", "-x", width, "-y", height, "-c", str(ROOT), "-e", f"START={START}",
            f"env -u COLUMNS -u LINES PS1='{PROMPT} ' sh",
        )  # fmt: skip
        self.type(f'wavedeck() {{ "{sys.executable}" -c "$START" {launch.ENGINE} "$@"; }}; clear')
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Press keys by their names in tmux: `Enter`, `C-r`, `q`."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type letters."""
        self._tmux("send-keys", "-l", "--", text)

    def run(self, command: str) -> None:
        """Type a command into the shell and run it."""
        self.type(f"clear; {command}")
        self.press("Enter")

    def screen(self) -> str:
        """Return the text on the screen."""
        return self._tmux("capture-pane", "-p")

    def wait_for(self, *words: str) -> str:
        """Wait until all words are on the screen and return its text."""
        return self.wait_until(lambda text: all(word in text for word in words), f"words {words}")

    def wait_for_line(self, start: str) -> str:
        """Wait until the lowest line begins with this text and return the screen's text."""
        return self.wait_until(
            lambda text: text.rstrip().rpartition("\n")[2].startswith(start), f"the line {start!r}"
        )

    def wait_until(self, condition: Callable[[str], bool], awaited: str) -> str:
        """Wait until the condition holds for the text on the screen; a failure shows the screen."""
        wait_until(lambda: condition(self.screen()), awaited, shown=self.screen, poll_s=POLL_S)
        return self.screen()

    def close(self) -> None:
        """End the server and its programs."""
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            [*self._server, *words], check=True, capture_output=True, text=True, timeout=LIMIT_S
        )
        return done.stdout


@contextmanager
def tmux(size: tuple[int, int]) -> Iterator[Tmux]:
    """Open a shell of (columns, rows); skips the test where tmux is not installed."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    pane = Tmux(size)
    try:
        yield pane
    finally:
        pane.close()
