"""The app around the screens: leaving, help, palette, keys, mouse, colours, and what it loads to start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sessions import Home
from sessions.files import FileLock
from tests.support.journals import SESSION, finished, running, write_live
from tests.tui.cockpits import NARROW, WIDE, Clock, live, replayed, until
from tui.cockpit.app import Cockpit, ExitNote, run_cockpit
from tui.cockpit.keymap import check_keymap, key_names
from tui.cockpit.screens.agent import AgentScreen
from tui.cockpit.screens.dialogs import TextDialog
from tui.cockpit.screens.fleet import FleetScreen
from tui.diagnostics import Complaint


def test_the_cockpit_starts_without_heavy_company() -> None:
    code = "import tui.cockpit.app, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "textual" in loaded
    assert not loaded & {
        "torch",
        "triton",
        "numpy",
        "git",
        "gitdb",
        "anthropic",
        "openai",
        "httpx",
        "asyncio.unix",
    }


async def left(app: Cockpit, home: Home) -> ExitNote:
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: app.feed is not None and app.feed.state.started is not None, "the session")
        assert app.feed is not None
        live = app.feed.live
        if live is not None:
            await until(pilot, lambda: not live.behind, "all events")
        await pilot.press("q")
    assert isinstance(app.return_value, ExitNote)
    return app.return_value


async def test_leaving_a_running_session_says_how_to_come_back(home: Home) -> None:
    write_live(home, running())
    lock = FileLock(home.live(SESSION).lock)
    assert lock.acquire()
    note = await left(Cockpit(home, session=SESSION, mode="live"), home)
    assert note.lines == (
        f"{SESSION} goes on without the cockpit; come back with: wavedeck attach {SESSION}",
    )
    assert home.live(SESSION).running, "the engine is not touched"
    lock.release()


async def test_leaving_a_session_without_an_engine_says_how_to_go_on(home: Home) -> None:
    write_live(home, running())
    note = await left(Cockpit(home, session=SESSION, mode="live"), home)
    assert note.lines == (f"{SESSION} is not running; go on with: wavedeck resume {SESSION}",)


async def test_leaving_a_finished_session_says_how_to_see_it_again(home: Home) -> None:
    write_live(home, finished())
    note = await left(Cockpit(home, session=SESSION, mode="live"), home)
    assert f"wavedeck replay {SESSION}" in note.lines[0]


async def test_help_is_about_the_focused_pane_and_the_keys_that_work_now() -> None:
    app, _ = live(running())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("3", "question_mark")
        await until(
            pilot,
            lambda: isinstance(app.screen, TextDialog) and bool(app.screen.query_one("LineView").lines),
            "help",
        )
        text = app.screen.query_one("LineView").text
        assert "One row a device" in text
        assert "play" not in text, "a replay's key"
        await pilot.press("escape", "enter")
        app.open_agent("softmax#1")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "the agent")
        await pilot.press("2", "question_mark")
        await until(
            pilot,
            lambda: isinstance(app.screen, TextDialog) and bool(app.screen.query_one("LineView").lines),
            "help",
        )
        text = app.screen.query_one("LineView").text
        assert "The candidate" in text
        assert "accept" in text


async def test_the_palette_reaches_any_attempt() -> None:
    app, _ = live(running())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("ctrl+p", *"attemptsoftmax")
        palette = app.screen
        await pilot.press("number_sign", "1", "slash", "1")
        options = palette.query_one("CommandList")
        await until(
            pilot,
            lambda: options.option_count >= 1 and "softmax#1/1" in str(options.get_option_at_index(0).prompt),
            "the hit",
        )
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "the agent")
        assert isinstance(app.screen, AgentScreen)
        assert app.screen.attempt is not None
        assert app.screen.attempt.attempt == "softmax#1/1"


async def test_any_key_can_be_another() -> None:
    app, _ = live(running(), keymap={"agent.diff": "w", "app.quit": "Q"})
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("enter", "d")
        assert isinstance(app.screen, AgentScreen)
        assert not app.screen.shows_diff
        await pilot.press("w")
        assert app.screen.shows_diff
        assert " w diff" in app.screen.query_one("KeyBar").text


def test_every_binding_of_ours_has_a_name() -> None:
    names = key_names(Cockpit)
    for expected in (
        "app.quit",
        "agent.accept",
        "replay.play",
        "fleet.back",
        "home.reload",
        "table.open",
        "words.follow",
    ):
        assert expected in names


def test_a_key_that_is_bound_to_nothing_is_an_error_with_the_nearest_right_name() -> None:
    with pytest.raises(Complaint, match=r"agent\.acept.*did you mean 'agent\.accept'"):
        check_keymap({"agent.acept": "A"}, Cockpit)


def test_an_unknown_theme_is_an_error_that_lists_them(tmp_path: Path) -> None:
    with pytest.raises(Complaint, match=r"unknown theme 'nope'; themes are .*wavedeck"):
        run_cockpit(home=tmp_path, session=None, mode="home", theme="nope")


async def test_m_leaves_the_mouse_to_the_terminal_and_says_so() -> None:
    app, _ = live(running())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        assert "mouse off" not in screen.header_bar.text
        await pilot.press("m")
        assert "mouse off" in screen.header_bar.text
        await pilot.press("m")
        assert "mouse off" not in screen.header_bar.text


async def test_a_session_that_does_not_exist_is_told_and_the_list_stays(home: Home) -> None:
    app = Cockpit(home, session=SESSION, mode="replay")
    async with app.run_test(size=NARROW) as pilot:
        await until(
            pilot,
            lambda: any(
                SESSION in notification.message and notification.severity == "error"
                for notification in app._notifications
            ),
            "the error",
        )
        assert app.feed is None


async def test_a_replay_from_the_start_is_what_wavedeck_replay_shows() -> None:
    clock = Clock()
    app = replayed(finished(), clock=clock, speed=50.0)
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the replay")
        assert app.feed is not None
        clock.now += 60
        await until(pilot, lambda: app.feed is not None and app.feed.state.finished, "the end")


@pytest.mark.parametrize(
    "theme", ["wavedeck", "wavedeck-light", "ansi-dark", "ansi-light", "nord", "textual-light"]
)
async def test_every_theme_draws(theme: str) -> None:
    app, _ = live(running())
    app.theme = theme
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("enter", "d")
        assert isinstance(app.screen, AgentScreen)


def test_the_page_about_the_cockpit_names_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cockpit.md").read_text(encoding="utf-8")
    assert [name for name in key_names(Cockpit) if f"`{name}`" not in page] == []
