"""`run` in a terminal: the cockpit opens while the engine starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sessions import Home
from tests.support.command_line import ROOT
from tests.support.sessions import stored_sessions as stored
from tests.tui.terminal.terminals import Terminal, terminal
from tui.diagnostics import ExitCode

pytestmark = pytest.mark.judge
RUN = """
import engine.process.launch, sys
import tui.commands.look.cockpit
from tui.cli import main
engine.process.launch.ENGINE = "held_engine"
{before}
sys.exit(main(["run", "vector_add", "--model", "recorded:mine", "--devices", "cpu"]))
"""
HELD_ENGINE = """
import pathlib, runpy, sys, time
while not pathlib.Path({gate!r}).exists():
    time.sleep(0.02)
{action}
"""
STARTS = 'runpy.run_module("tests.support.engine.judgeless_engine", run_name="__main__", alter_sys=True)'
FAILS = 'sys.exit("the engine has no disk")'
INTERRUPTED = """
def run_cockpit(**options): raise KeyboardInterrupt
tui.commands.look.cockpit.run_cockpit = run_cockpit
"""
WAITS = b"starting the engine"


@pytest.fixture
def gate(home: Home, tmp_path: Path) -> Path:
    """The engine does nothing until this file exists."""
    stored.vector_add_recording(home, "mine")
    return tmp_path / "gate"


@contextmanager
def running(gate: Path, *, action: str, before: str = "") -> Iterator[Terminal]:
    gate.with_name("held_engine.py").write_text(HELD_ENGINE.format(gate=str(gate), action=action))
    path = f"{gate.parent}:{ROOT}"
    with terminal(RUN.format(before=before), size=(120, 40), environ={"PYTHONPATH": path}) as screen:
        yield screen


def test_cockpit_opens_while_the_engine_starts(home: Home, gate: Path, engines: None) -> None:
    with running(gate, action=STARTS) as screen:
        screen.until(lambda seen: WAITS in seen, "the words of the start")
        assert b"ENGINE ENDED" not in screen.received
        gate.touch()
        screen.until(lambda seen: b"recorded:mine" in seen.rpartition(WAITS)[2], "the session")
        screen.press("q")
        assert screen.ends() == ExitCode.DONE
    assert b"ENGINE ENDED" not in screen.received


def test_engine_that_does_not_start_closes_the_cockpit(home: Home, gate: Path, engines: None) -> None:
    with running(gate, action=FAILS) as screen:
        screen.until(lambda seen: WAITS in seen, "the words of the start")
        gate.touch()
        assert screen.ends() == ExitCode.FAILED
        said = screen.received.rpartition(b"\x1b[?1049l")[2].decode()
    assert "wavedeck: the engine has no disk" in said
    assert "attach" not in said
    assert home.session_folders() == []


def test_leaving_during_the_start_names_the_session(home: Home, gate: Path, engines: None) -> None:
    with running(gate, action=STARTS) as screen:
        screen.until(lambda seen: WAITS in seen, "the words of the start")
        screen.press("q")
        screen.until(lambda seen: b"wavedeck attach" in seen, "how to come back")
        gate.touch()
        assert screen.ends() == ExitCode.DONE
        (live,) = home.session_folders()
        assert f"wavedeck attach {live.session}".encode() in screen.received
        assert live.running


def test_interrupt_before_the_cockpit_leaves_no_engine(home: Home, gate: Path, engines: None) -> None:
    with running(gate, action=STARTS, before=INTERRUPTED) as screen:
        assert screen.ends() == ExitCode.INTERRUPTED
    gate.touch()
    assert home.session_folders() == []
