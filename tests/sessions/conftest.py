"""Fixtures of the tests of `sessions`: an empty home, and homes with a finished and with a stopped session."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from sessions import Home
from sessions import events as ev
from tests.support.sessions import story


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Empty home."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="session")
def finished_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Home with the finished session `story.SESSION`; shared and read-only, `copied_home` copies it."""
    return recorded(Home(tmp_path_factory.mktemp("finished") / "home"), story.after_start())


@pytest.fixture
def copied_home(finished_home: Home, home: Home) -> Home:
    """Writable home with the finished session `story.SESSION`."""
    shutil.copytree(finished_home.root, home.root)
    return home


@pytest.fixture(scope="session")
def stopped_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Home with `story.SESSION`, stopped after the first instance; shared and read-only, `stopped` copies it."""
    events = [*story.instance(1), ev.EngineStopped(reason="asked")]
    return recorded(Home(tmp_path_factory.mktemp("stopped") / "home"), events)


@pytest.fixture
def stopped(stopped_home: Home, home: Home) -> Home:
    """Writable home with the stopped session `story.SESSION`."""
    shutil.copytree(stopped_home.root, home.root)
    return home


def recorded(home: Home, events: Iterable[ev.Event]) -> Home:
    """Record the session with these events after its first one."""

    async def record() -> None:
        with story.begin(home) as recorder:
            await story.play(recorder, events)
            await recorder.put_down()

    asyncio.run(record())
    return home
