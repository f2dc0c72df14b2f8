"""A home with a finished session in it, made once and copied for each test that wants one."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from sessions import Clock, Home, Recorder
from tests.sessions import story


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of the test's own."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="session")
def finished_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with `story.SESSION`, finished; copied by `told_home`, never written."""
    home = Home(tmp_path_factory.mktemp("told") / "home")

    async def tell() -> None:
        clock = Clock(story.Ticking(), story.Ticking(0.0))
        recorder = Recorder.begin(home, story.started(), clock=clock)
        await story.play(recorder, story.after_start())
        await recorder.finish()

    asyncio.run(tell())
    return home


@pytest.fixture
def told_home(finished_home: Home, home: Home) -> Home:
    """A home with the finished session `story.SESSION`, to do with as one likes."""
    shutil.copytree(finished_home.root, home.root)
    return home
