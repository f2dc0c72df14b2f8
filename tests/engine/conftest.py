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


@pytest.fixture(scope="session")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(autouse=True)
def no_authorities(monkeypatch: pytest.MonkeyPatch, empty_folder: Path) -> None:
    """Let model clients trust no certificate authority: each client loads the machine's list in 22 ms of CPU time."""
    monkeypatch.setenv("SSL_CERT_DIR", str(empty_folder))
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
