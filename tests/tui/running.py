"""Running the command line as a person's shell does, and in this process where that is enough."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tui.cli import main

ROOT = Path(__file__).parent.parent.parent


class Done(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


class Shell:
    """Runs commands in this process; standard output and error are no terminals."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Done:
        self._capsys.readouterr()
        code = int(main(arguments))
        out, err = self._capsys.readouterr()
        return Done(code, out, err)


def run_script(*arguments: str, environ: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run `python -m tui` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tui", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environ,
        input=stdin,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def one_line(done: Done) -> str:
    """The complaint of a command, which must be all that it said on standard error, on one line."""
    lines = done.err.splitlines()
    assert len(lines) == 1, done.err
    assert lines[0].startswith("wavedeck: ")
    assert "Traceback" not in done.err
    return lines[0]
