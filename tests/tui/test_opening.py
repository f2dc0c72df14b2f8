"""Commands in a real terminal: which commands open the cockpit, and the text after the cockpit closed."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sessions import Home
from tests.support import stored_sessions as stored
from tests.support.command_line import ROOT
from tests.support.waiting import LIMIT_S, check_time

DRAWN = b"\x1b[?1049h"
CLOSED = b"\x1b[?1049l"


class Terminal:
    """Runs a command in a terminal of 80 by 24."""

    def __init__(self, *arguments: str, environ: Mapping[str, str] | None = None) -> None:
        self.received = b""
        # The program's end stays open here too: data in transit can be lost when the last process closes this end.
        self._test_end, self._program_end = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tui", *arguments],
            stdin=self._program_end,
            stdout=self._program_end,
            stderr=self._program_end,
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **(environ or {})},
            start_new_session=True,
        )

    def wait_until(self, condition: Callable[[], bool], awaited: str) -> None:
        """Read until the condition holds; fail after `LIMIT_S`, or if the command ends before."""
        limit = time.monotonic() + LIMIT_S
        while not condition():
            check_time(limit, awaited, self._tail)
            assert self._read() or self._process.poll() is None, self._tail()

    def _tail(self) -> str:
        return repr(self.received[-2000:])

    def press(self, keys: bytes) -> None:
        os.write(self._test_end, keys)

    def end(self) -> int:
        """Read until the command ends and return its exit code."""
        limit = time.monotonic() + LIMIT_S
        while self._process.poll() is None:
            self._read()
            check_time(limit, "the end of the command", self._tail)
        while self._read():
            pass
        os.close(self._program_end)
        os.close(self._test_end)
        return self._process.wait(LIMIT_S)

    def after_closing(self) -> str:
        """Return the text that was printed after the cockpit closed."""
        return self.received.rpartition(CLOSED)[2].decode().replace("\r\n", "\n")

    def _read(self) -> bool:
        """Read available data with a short wait; returns `True` if there was data."""
        if not select.select([self._test_end], [], [], 0.1)[0]:
            return False
        self.received += os.read(self._test_end, 1 << 16)
        return True


def test_replay_opens_the_cockpit_and_prints_its_command_at_exit(home: Home) -> None:
    stored.finished(home)
    terminal = Terminal("replay", stored.FIRST[:12])
    terminal.wait_until(lambda: b"softmax" in terminal.received, "the replay")
    terminal.press(b"q")
    assert terminal.end() == 0
    assert DRAWN in terminal.received
    assert f"wavedeck replay {stored.FIRST}" in terminal.after_closing()


def test_dumb_terminal_gets_plain_text(home: Home) -> None:
    stored.finished(home)
    terminal = Terminal("replay", stored.FIRST, environ={"TERM": "dumb"})
    assert terminal.end() == 0
    assert b"\x1b" not in terminal.received
    assert b"== softmax#1/2  repair of softmax#1/1" in terminal.received


@pytest.mark.judge
def test_run_opens_the_cockpit_and_prints_its_summary_at_exit(home: Home) -> None:
    stored.vector_add_recording(home, "mine")
    terminal = Terminal("run", "vector_add", "--model", "recorded:mine")
    terminal.wait_until(lambda: DRAWN in terminal.received, "the cockpit")
    terminal.wait_until(lambda: not home.live_sessions(), "the end of the session")
    terminal.press(b"q")
    assert terminal.end() == 0
    text = terminal.after_closing()
    assert "vector_add  correct       confirmed" in text
    assert "wavedeck replay " in text


def test_wrong_key_map_is_an_error_before_the_cockpit_opens(home: Home, tmp_path: Path) -> None:
    stored.finished(home)
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "wavedeck" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[keys]\n"app.quti" = "Q"\n')
    terminal = Terminal("replay", stored.FIRST)
    assert terminal.end() == 2
    assert DRAWN not in terminal.received
    assert b"app.quit" in terminal.received
