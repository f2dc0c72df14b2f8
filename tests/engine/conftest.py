"""Fixtures of the engine's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessions import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Empty home."""
    return Home(tmp_path / "home")
