"""Runs the command line: in this process, or in its own process as a shell does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.process import launch
from tests.support.engine import judgeless_engine
from tui.cli import main

ROOT = Path(__file__).parent.parent.parent
LIMIT_S = 240.0
"""A command of the tests ends before, also on a busy machine."""


class Done(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


class Shell:
    """Runs commands in this process; their standard output and error are not terminals."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Done:
        self._capsys.readouterr()
        code = int(main(arguments))
        out, err = self._capsys.readouterr()
        return Done(code, out, err)


def run_script(*arguments: str, environ: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run `python -m tui` in its own process."""
    done = subprocess.run(
        [sys.executable, "-m", "tui", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environ,
        input=stdin,
        timeout=LIMIT_S,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


START = """
import runpy, sys
from engine.process import launch
launch.ENGINE = sys.argv.pop(1)
runpy.run_module("tui", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def scripted_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines judge with a script: for tests of everything around a judge. Holds for `Shell` and `start`."""
    monkeypatch.setattr(launch, "ENGINE", judgeless_engine.__name__)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def start(*arguments: str) -> subprocess.Popen[str]:
    """Start `python -m tui` in its own process, which a test can interrupt; its engines are those of this process."""
    return subprocess.Popen(
        [sys.executable, "-c", START, launch.ENGINE, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def one_line(done: Done) -> str:
    """Return the error line of a command; asserts that standard error has only this line."""
    lines = done.err.splitlines()
    assert len(lines) == 1, done.err
    assert lines[0].startswith("wavedeck: ")
    assert "Traceback" not in done.err
    return lines[0]
