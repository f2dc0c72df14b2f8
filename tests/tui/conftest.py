"""What the command line's tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sessions import Home, home_from
from tests.tui.running import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """`wavedeck` in an empty working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Shell(capsys)


@pytest.fixture
def home(isolated_home: Path) -> Home:
    """The test's own home."""
    return home_from(os.environ)
