"""A screen below another screen or a dialog does not make the terminal draw again and again."""

from __future__ import annotations

import base64

from sessions import Home
from tests.support.sessions.journals import finished, write_live
from tests.tui.terminal.terminals import Terminal, terminal

RUN = """
from pathlib import Path
from tui.cockpit.running import run_cockpit
run_cockpit(home=Path({home!r}), session=None, mode="home")
"""
BLINKING_BYTES = 600
"""At most this much is sent in a second for a cursor that blinks."""


def rests(screen: Terminal) -> None:
    screen.until(lambda _: screen.read(0.6) == b"", "silence")


def test_screens_below_send_nothing(home: Home) -> None:
    write_live(home, finished())
    with terminal(RUN.format(home=str(home.root)), size=(120, 40)) as screen:
        screen.until(lambda seen: b"softmax" in seen or b"geak" in seen, "the list of sessions")
        rests(screen)
        screen.press(":")
        screen.read(0.5)
        assert len(screen.read(1.2)) < 2 * BLINKING_BYTES, "Home below the command line"
        screen.press("\x1b")
        screen.read(0.5)
        screen.press("\r")
        screen.until(lambda seen: b"Tasks 2" in seen, "the fleet")
        rests(screen)
        assert screen.read(1.2) == b"", "Home below Fleet"


def test_screen_is_painted_once_when_it_opens(home: Home) -> None:
    write_live(home, finished())
    with terminal(RUN.format(home=str(home.root)), size=(120, 40)) as screen:
        screen.until(lambda seen: b"softmax" in seen or b"geak" in seen, "the list of sessions")
        screen.press("\r")
        screen.until(lambda seen: b"Tasks 2" in seen, "the fleet")
        rests(screen)
        for key, title in (("A", b"3 verdict"), ("R", b"1 winners")):
            before = len(screen.received)
            screen.press(key)
            screen.until(lambda seen: title in seen[before:], f"the screen of {key}")  # noqa: B023
            rests(screen)
            assert screen.received[before:].count(b"Review") == 1, "the line with the names of the screens"


def test_keys_that_come_in_one_burst_act_in_their_order(home: Home) -> None:
    """SSH sends together what was typed within a moment."""
    with terminal(RUN.format(home=str(home.root)), size=(80, 24)) as screen:
        screen.until(lambda seen: b"No session yet" in seen, "an empty Home")
        rests(screen)
        screen.press("cG\rr\x7fa\ry")  # the form, its last field, `a`, and a copy of the command
        copied = base64.b64encode(b"wavedeck run --title a")
        screen.until(lambda seen: b"]52;c;" + copied + b"\x07" in seen, "the command with the title `a`")
        screen.press(":r\x7fquit\r")
        assert screen.ends() == 0
