"""Home screen: the list of sessions, and the next command if it is empty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from sessions import Home
from sessions.catalog import SessionInfo, Standing
from tests.support.cockpits import NARROW, WIDE, at_home, until
from tests.support.journals import SESSION, running, write_live
from tui.cockpit.app import Cockpit
from tui.cockpit.dialogs import TextDialog
from tui.cockpit.screens.fleet import FleetScreen
from tui.cockpit.screens.home import HomeScreen, SessionTable
from tui.cockpit.viewer import ExitNote

INFOS = [
    SessionInfo(
        name=SESSION,
        state=Standing.RUNNING,
        method="geak",
        model="anthropic:some-model",
        tasks=("starter/softmax", "starter/vector_add"),
        started=1_795_183_380.0,
        attempts=7,
        solved=("starter/softmax",),
        speedups={"starter/softmax": 1.42},
        input_tokens=120_000,
        output_tokens=34_000,
        cost_usd=1.23,
    ),
    SessionInfo(
        name="20261119-090000-geak-0001", state=Standing.CRASHED, method="geak", model="recorded:starter"
    ),
]


def listed(pilot: Pilot[ExitNote]) -> Callable[[], bool]:
    def done() -> bool:
        screen = pilot.app.screen
        return isinstance(screen, HomeScreen) and "Reading" not in screen.query_one(SessionTable).empty

    return done


async def wait_for_list(pilot: Pilot[ExitNote]) -> None:
    await until(pilot, listed(pilot), "the list")


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
@pytest.mark.parametrize("infos", [[], INFOS], ids=["empty", "sessions"])
def test_picture_of_the_home_screen(
    size: tuple[int, int], infos: list[SessionInfo], snap_compare: Callable[..., bool]
) -> None:
    app = at_home(lambda: infos)
    assert snap_compare(app, terminal_size=size, run_before=wait_for_list)


async def test_empty_home_names_the_next_command() -> None:
    app = at_home(list)
    async with app.run_test(size=NARROW) as pilot:
        await wait_for_list(pilot)
        assert "wavedeck run" in app.screen.query_one(SessionTable).empty


async def test_session_rows_show_the_known_facts() -> None:
    app = at_home(lambda: INFOS)
    async with app.run_test(size=(200, 24)) as pilot:
        await wait_for_list(pilot)
        text = app.screen.query_one(SessionTable).text
        for fact in ("running", "1/2", "softmax 1.42x", "120k in 34k out", "$1.23", "2026-11-20", "crashed"):
            assert fact in text


async def test_enter_opens_the_live_session(home: Home) -> None:
    write_live(home, running())
    app = Cockpit(home)
    async with app.run_test(size=NARROW) as pilot:
        await until(
            pilot,
            lambda: bool(app.screen.query(SessionTable)) and bool(app.screen.query_one(SessionTable).rows),
            "rows",
        )
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        assert app.feed is not None
        await until(
            pilot, lambda: app.feed is not None and app.feed.state.last_seq == len(running()), "all events"
        )
        assert "softmax#1" in app.screen.agents.text
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_unreadable_list_is_shown_with_a_crash_file(tmp_path: Path) -> None:
    def broken() -> list[SessionInfo]:
        raise ZeroDivisionError("a bug of ours")

    app = at_home(broken, home=Home(tmp_path))
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TextDialog), "the dialog")
        await pilot.pause()
        text = app.screen.query_one("LineView").text
        assert "ZeroDivisionError" in text
        (file,) = (tmp_path / "crashes").iterdir()
        assert file.name in text.replace("\n", "")
        assert "Traceback" in file.read_text()
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)
