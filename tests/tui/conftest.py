"""Fixtures of the tests of the command line and the cockpit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions import Home, home_from
from sessions.engine_info import read_engine_info
from tests.support.command_line import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs `wavedeck` in an empty working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Shell(capsys)


@pytest.fixture
def home(isolated_home: Path) -> Home:
    """Home of this test."""
    return home_from(os.environ)


@pytest.fixture
def engines(home: Home) -> Iterator[None]:
    """Kills the engines that still run at the end of the test."""
    yield
    for live in home.live_sessions():
        info = read_engine_info(live)
        if info is not None and live.running:
            os.kill(info.pid, signal.SIGKILL)
