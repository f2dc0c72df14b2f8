"""Cockpit in a pseudo terminal: sent bytes, keys, exit and crashes."""

from __future__ import annotations

import base64
import re
import signal
import termios
import time
from pathlib import Path

import msgspec
import pytest

from benchmarks.generated_session.eighty_instances import session
from sessions import Home, fold
from sessions.events import AttemptStarted, CallStarted, Origin, ReplyPiece, Role
from tests.support.draws import drawn
from tests.support.sessions.journals import SESSION, EventLog, append, finished, running, write_live
from tests.support.waiting import LIMIT_S, check_time
from tests.tui.terminal.terminals import Terminal, terminal
from tui.cockpit.running import GRACE_S
from tui.cockpit.terminal.terminal import CLIPBOARD_BYTES, copy

RUN = """
from pathlib import Path
from tui.cockpit.running import run_cockpit
from tui.config import Preferences
note = run_cockpit(home=Path({home!r}), session={session!r}, mode="live", preferences=Preferences(theme={theme!r}))
print("SAID:", *note.lines, note.failed)
"""
PATIENT = f"import tui.cockpit.running\ntui.cockpit.running.GRACE_S = {LIMIT_S}\n"
"""A busy machine may need longer than `GRACE_S` for the way out."""
STREAMED = 99
"""Number of the attempt that each instance streams."""
FIRST_BYTES = 5000
"""In half a second, a cockpit sends fewer bytes once its first pictures are drawn."""
COLOUR = re.compile(rb"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|38|48|9[0-7]|10[0-7])[0-9;]*m")


def code(home: Home, *, theme: str | None = None) -> str:
    return RUN.format(home=str(home.root), session=SESSION, theme=theme)


def eighty_streams(wall: float) -> EventLog:
    """Return the generated session, in which each of the 80 instances now streams the reply of a new attempt."""
    log = EventLog()
    log.events = session()
    log.wall = log.events[-1].wall
    for key in fold(log.events).instances:
        log.add(AttemptStarted(attempt=f"{key}/{STREAMED}", origin=Origin.FRESH))
        log.add(
            CallStarted(
                call=f"{key}/{STREAMED}/generator/1",
                attempt=f"{key}/{STREAMED}",
                role=Role.GENERATOR,
                model="m",
                messages=(),
            )
        )
    later = wall - log.wall
    log.events = [msgspec.structs.replace(event, wall=event.wall + later) for event in log.events]
    log.wall = wall
    return log


def wait_for_fleet(screen: Terminal) -> None:
    screen.until(lambda seen: b"Tasks 2" in seen and b"vector_add" in seen, "Fleet")


def open_agent(screen: Terminal, title: bytes = b"steps #1/3") -> None:
    wait_for_fleet(screen)
    screen.press("\r")
    screen.until(lambda seen: title in seen, "Agent")


def test_eighty_streaming_instances_send_at_most_30_kb_per_second(home: Home) -> None:
    """80 instances at 20 tokens per second in 160x48 need at most 30 KB/s."""
    log = eighty_streams(time.time())
    keys = list(fold(log.events).instances)
    journal = write_live(home, log.events)
    with terminal(code(home), size=(160, 48)) as screen:
        screen.until(lambda seen: b"Tasks 20" in seen, "Fleet")
        limit = time.monotonic() + LIMIT_S
        quiet = 0
        while quiet < 3:  # the first pictures are whole ones, and late ones on a busy machine
            check_time(limit, "the end of the first pictures", screen.tail)
            quiet = quiet + 1 if len(screen.read(0.5)) <= FIRST_BYTES else 0
        began, sent = time.monotonic(), 0
        seconds = 2.0
        while time.monotonic() - began < seconds or not sent:
            check_time(began + LIMIT_S, "bytes", screen.tail)
            written = len(log.events)
            for key in keys:
                # 20 tokens per second of 4 letters each, in ten pieces per second.
                log.add(ReplyPiece(call=f"{key}/{STREAMED}/generator/1", kind="text", text="abcdefgh"))
            log.wall = time.time()
            append(journal, log.events[written:])
            sent += len(screen.read(0.1))
        took = time.monotonic() - began
        assert sent / took <= 30_000


def test_unexpected_error_leaves_a_crash_file_and_no_traceback_and_no_color_no_colour(home: Home) -> None:
    write_live(home, finished())
    broken = "import tui.cockpit.screens.agent.agent as agent\nagent.AgentScreen.action_code = lambda self, *_: 1 / 0\n"
    with terminal(broken + code(home), size=(80, 24), environ={"NO_COLOR": "1"}) as screen:
        open_agent(screen)
        assert not COLOUR.findall(screen.received)
        screen.press("d")
        assert screen.ends() == 0
        note = screen.received.rpartition(b"SAID:")[2].decode()
        assert "the cockpit failed: ZeroDivisionError" in note
        assert "True" in note
        assert b"Traceback" not in screen.received
        (file,) = (home.root / "crashes").iterdir()
        assert str(file) in note.replace("\r\n", "")
        assert "ZeroDivisionError" in file.read_text()


class Sent:
    """Driver that stores the written text."""

    def __init__(self) -> None:
        self.data = ""

    def write(self, data: str) -> None:
        self.data += data


@pytest.mark.parametrize("tmux", [False, True])
def test_copied_text_is_sent_as_osc_52(tmux: bool) -> None:  # noqa: FBT001
    driver = Sent()
    message = copy(driver, "tl.load\n", tmux=tmux)  # type: ignore[arg-type]
    encoded = base64.b64encode(b"tl.load\n").decode()
    assert f"\x1b]52;c;{encoded}\a" in driver.data
    assert ("\x1bPtmux;" in driver.data) is tmux
    assert "8 B sent" in message
    assert "copied" not in message, "no terminal says whether it took the text"


def test_too_long_clipboard_text_goes_to_a_file() -> None:
    driver = Sent()
    text = "x" * CLIPBOARD_BYTES
    message = copy(driver, text, tmux=False)  # type: ignore[arg-type]
    assert driver.data == ""
    file = Path(message.rpartition(" ")[2])
    assert file.read_text() == text
    file.unlink()


def test_editor_gets_the_terminal_and_gives_it_back_and_exit_restores_the_screen(home: Home) -> None:
    write_live(home, finished())
    with terminal(code(home), size=(80, 24), environ={"EDITOR": "echo EDITED"}) as screen:
        open_agent(screen)
        screen.until(lambda seen: b"not in the store" in seen, "the banner")
        screen.press("E")
        screen.until(lambda seen: b"nothing was changed" in seen, "the cockpit after the editor")
        shown, _, after = screen.received.partition(b"EDITED")
        assert b"\x1b[?1049l" in shown
        assert b"\x1b[?1049h" in after
        screen.press("q")
        assert screen.ends() == 0
        before, leave, _ = screen.received.rpartition(b"\x1b[?1049l")
        assert leave, "the alternate screen is closed"
        assert b"\x1b[H\x1b[2J" in before[-200:], (
            "cleared: tmux keeps text that is too long for a larger screen"
        )
        assert f"wavedeck resume {SESSION}".encode() in screen.received.rpartition(b"SAID:")[2]


def modes(screen: Terminal) -> list[object]:
    return termios.tcgetattr(screen.descriptor)


@pytest.mark.parametrize("number", drawn([signal.SIGTERM, signal.SIGHUP], 1))
def test_signal_restores_the_terminal_and_ends_the_cockpit(home: Home, number: signal.Signals) -> None:
    write_live(home, finished())
    with terminal(PATIENT + code(home), size=(80, 24)) as screen:
        before = modes(screen)
        wait_for_fleet(screen)
        assert modes(screen) != before
        screen.process.send_signal(number)
        assert screen.ends() == -number, "ends by the signal"
        after = screen.received.rpartition(b"\x1b[?1049h")[2]
        for restored in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l"):
            assert restored in after
        assert modes(screen) == before
        assert b"Traceback" not in after


@pytest.mark.parametrize(
    "ignored", drawn(["", "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"], 1)
)
def test_vanished_terminal_ends_the_cockpit(home: Home, ignored: str) -> None:
    write_live(home, finished())
    with terminal(ignored + code(home), size=(80, 24)) as screen:
        wait_for_fleet(screen)
        screen.hang_up()
        screen.process.wait(LIMIT_S)


def test_signal_ends_the_cockpit_though_the_terminal_takes_nothing(home: Home) -> None:
    journal = write_live(home, running())
    with terminal(code(home), size=(200, 60)) as screen:
        wait_for_fleet(screen)
        screen.press("l\r")
        screen.until(lambda seen: b"steps #2/2" in seen, "Agent")
        events = running()
        fresh = EventLog(wall=events[-1].wall, events=list(events))
        for number in range(400):
            text = f"\n{number} " + "many words " * 15
            fresh.add(ReplyPiece(call="softmax#2/2/reflector/1", kind="text", text=text))
            if number % 10 == 0:
                append(journal, fresh.events[len(events) :])
                events = list(fresh.events)
                time.sleep(0.02)
        screen.process.send_signal(signal.SIGTERM)
        screen.process.wait(LIMIT_S)
    assert GRACE_S < 1
