"""Fixtures of the engine's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessions import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Empty home."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="session")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(autouse=True)
def no_authorities(monkeypatch: pytest.MonkeyPatch, empty_folder: Path) -> None:
    """Let model clients trust no certificate authority: each client loads the machine's list in 22 ms of CPU time."""
    monkeypatch.setenv("SSL_CERT_DIR", str(empty_folder))
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
