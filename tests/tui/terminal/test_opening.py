"""Commands in a real terminal: which commands open the cockpit, and the text after the cockpit closed."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from sessions import Home
from tests.support.sessions import stored_sessions as stored
from tests.tui.terminal.terminals import Terminal, terminal

DRAWN = b"\x1b[?1049h"
CLOSED = b"\x1b[?1049l"


def running(*arguments: str, **environ: str) -> AbstractContextManager[Terminal]:
    """Run a command in a terminal of 80 by 24."""
    code = f"import sys; from tui.cli import main; sys.exit(main({list(arguments)!r}))"
    return terminal(code, size=(80, 24), environ=environ)


def after_closing(screen: Terminal) -> str:
    """Return the text that was printed after the cockpit closed."""
    return screen.received.rpartition(CLOSED)[2].decode().replace("\r\n", "\n")


def test_dumb_terminal_gets_plain_text(home: Home) -> None:
    stored.finished(home)
    with running("replay", stored.FIRST, TERM="dumb") as screen:
        assert screen.ends() == 0
    assert b"\x1b" not in screen.received
    assert b"repair of softmax#1/1" in screen.received


@pytest.mark.soak
@pytest.mark.judge
def test_run_opens_the_cockpit_and_prints_its_summary_at_exit(home: Home) -> None:
    stored.vector_add_recording(home, "mine")
    with running("run", "vector_add", "--model", "recorded:mine") as screen:
        screen.until(lambda seen: DRAWN in seen, "the cockpit")
        screen.until(lambda _: not home.session_folders(), "the end of the session")
        screen.press("q")
        assert screen.ends() == 0
    text = after_closing(screen)
    assert "vector_add  correct       confirmed" in text
    assert "wavedeck replay " in text
