"""Fixtures of the engine's tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sessions import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Empty home."""
    return Home(tmp_path / "home")


@pytest.fixture(autouse=True)
def no_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sessions in this process skip fsync: no test can lose power, and a busy disk makes each event slow.

    `tests/sessions` protects when a session syncs. Engines in their own processes sync as always.
    """
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, os.fstat)  # raises for a bad descriptor, as a sync does
