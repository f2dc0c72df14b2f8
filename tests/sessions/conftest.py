"""Fixtures of the tests of `sessions`: an empty home, and a home with a finished session."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from sessions import EventClock, Home, Recorder
from tests.support.sessions import story


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Empty home."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="session")
def finished_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Home with the finished session `story.SESSION`; shared and read-only, `copied_home` copies it."""
    home = Home(tmp_path_factory.mktemp("finished") / "home")

    async def record() -> None:
        clock = EventClock(story.Ticking(), story.Ticking(0.0))
        recorder = Recorder.begin(home, story.started(), clock=clock)
        await story.play(recorder, story.after_start())
        await recorder.finish()

    asyncio.run(record())
    return home


@pytest.fixture
def copied_home(finished_home: Home, home: Home) -> Home:
    """Writable home with the finished session `story.SESSION`."""
    shutil.copytree(finished_home.root, home.root)
    return home
