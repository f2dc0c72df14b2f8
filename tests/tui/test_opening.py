"""Commands in a real terminal: what opens the cockpit, what does not, and what stands on the screen after it closed."""

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
from tests.tui import stored
from tests.tui.running import ROOT

LIMIT_S = 60.0
DRAWN = b"\x1b[?1049h"
CLOSED = b"\x1b[?1049l"


class Terminal:
    """A command in a terminal of 80 by 24, as a person sits before it."""

    def __init__(self, *arguments: str, environ: Mapping[str, str] | None = None) -> None:
        self.said = b""
        # The other end stays open here: what is still on its way when its last holder closes it can be lost.
        self._ours, self._theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tui", *arguments],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **(environ or {})},
            start_new_session=True,
        )

    def wait_until(self, true: Callable[[], bool]) -> None:
        """Read on until the condition holds; the test fails when it never does or the command ends before."""
        limit = time.monotonic() + LIMIT_S
        while not true():
            assert time.monotonic() < limit, self.said[-2000:]
            assert self._read() or self._process.poll() is None, self.said[-2000:]

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def end(self) -> int:
        """The exit code, once the command ended."""
        limit = time.monotonic() + LIMIT_S
        while self._process.poll() is None:
            self._read()
            assert time.monotonic() < limit, self.said[-2000:]
        while self._read():
            pass
        os.close(self._theirs)
        os.close(self._ours)
        return self._process.wait(LIMIT_S)

    def after_closing(self) -> str:
        """What was printed after the cockpit gave the screen back."""
        return self.said.rpartition(CLOSED)[2].decode().replace("\r\n", "\n")

    def _read(self) -> bool:
        """Take in what is there, waiting a little for it; whether there was anything."""
        if not select.select([self._ours], [], [], 0.1)[0]:
            return False
        self.said += os.read(self._ours, 1 << 16)
        return True


def test_replay_opens_the_cockpit_and_says_how_to_see_it_again(home: Home) -> None:
    stored.finished(home)
    terminal = Terminal("replay", stored.FIRST[:12])
    terminal.wait_until(lambda: b"softmax" in terminal.said)
    terminal.press(b"q")
    assert terminal.end() == 0
    assert DRAWN in terminal.said
    assert f"wavedeck replay {stored.FIRST}" in terminal.after_closing()


def test_a_dumb_terminal_gets_plain_text(home: Home) -> None:
    stored.finished(home)
    terminal = Terminal("replay", stored.FIRST, environ={"TERM": "dumb"})
    assert terminal.end() == 0
    assert b"\x1b" not in terminal.said
    assert b"== softmax#1/2  repair of softmax#1/1" in terminal.said


@pytest.mark.judge
def test_a_run_in_a_terminal_opens_the_cockpit_and_leaves_its_summary(home: Home) -> None:
    stored.vector_add_recording(home, "mine")
    terminal = Terminal("run", "vector_add", "--model", "recorded:mine")
    terminal.wait_until(lambda: DRAWN in terminal.said)
    terminal.wait_until(lambda: not home.live_sessions())
    terminal.press(b"q")
    assert terminal.end() == 0
    left = terminal.after_closing()
    assert "vector_add  correct       confirmed" in left
    assert "wavedeck replay " in left


def test_wrong_keys_in_the_configuration_are_told_before_anything_is_drawn(
    home: Home, tmp_path: Path
) -> None:
    stored.finished(home)
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "wavedeck" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[keys]\n"app.quti" = "Q"\n')
    terminal = Terminal("replay", stored.FIRST)
    assert terminal.end() == 2
    assert DRAWN not in terminal.said
    assert b"app.quit" in terminal.said
