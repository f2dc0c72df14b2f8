"""Cockpit app: exit notes, help, key map, mouse, themes and imports."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions import Home
from sessions import events as ev
from sessions.events import AnyEvent
from sessions.files import FileLock
from tests.support.cockpit.cockpits import NARROW, on_fleet, until
from tests.support.sessions.journals import (
    RIGHT_SOURCE,
    SESSION,
    EventLog,
    correct,
    finished,
    running,
    write_live,
)
from tui.cockpit.app import Cockpit
from tui.cockpit.keymap import key_names
from tui.cockpit.running import run_cockpit
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.config import Preferences
from tui.diagnostics import Complaint


@pytest.mark.parametrize(
    ("events", "has_engine", "words"),
    [
        (running, True, f"{SESSION} goes on without the cockpit; come back with: wavedeck attach {SESSION}"),
        (running, False, f"{SESSION} is not running; go on with: wavedeck resume {SESSION}"),
        (finished, True, f"wavedeck replay {SESSION}"),
        (finished, False, f"not in the store.* wavedeck resume {SESSION}"),
    ],
)
async def test_exit_names_the_command_that_goes_on(
    home: Home, events: Callable[[], list[AnyEvent]], words: str, *, has_engine: bool
) -> None:
    write_live(home, events())
    lock = FileLock(home.files(SESSION).lock)
    assert not has_engine or lock.acquire()
    app = Cockpit(home, session=SESSION, mode="live")
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: app.feed is not None and app.feed.state.started is not None, "the session")
        if app.feed.live is not None:
            await until(pilot, lambda: not app.feed.live.behind, "all events")
        await pilot.press("q")
    [line] = app.return_value.lines
    assert re.search(words, line)
    assert home.files(SESSION).running is has_engine, "the engine still runs"
    lock.release()


async def test_exit_names_the_session_that_waits_beside_the_replay_that_is_left(home: Home) -> None:
    log = EventLog()
    log.open(review="manual")
    log.add(ev.InstanceStarted(task="starter/softmax", instance=1))
    log.attempt("softmax#1/1", RIGHT_SOURCE, correct())
    log.add(ev.WaitingForPerson(attempt="softmax#1/1"))
    write_live(home, log.events)
    lock = FileLock(home.files(SESSION).lock)
    assert lock.acquire()
    app = Cockpit(home)
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: SESSION in app.screen.table.infos, "the list")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the example")
        await pilot.press("q")
    first, second = app.return_value.lines
    assert first.startswith("replay again with: wavedeck replay ")
    assert second == f"{SESSION} waits for you; open it with: wavedeck attach {SESSION}"
    lock.release()


async def test_person_chooses_keys() -> None:
    chosen = Preferences(keys={"code.diff": "ctrl+t"})
    async with on_fleet(running(), preferences=chosen) as (pilot, app):
        await pilot.press("enter", "d")
        assert isinstance(app.screen, AgentScreen)
        assert str(app.screen.code.border_title).startswith("code")
        await pilot.press("ctrl+t")
        assert str(app.screen.code.border_title).startswith("diff base")
        assert " ^t diff" in app.screen.query_one("KeyBar").text


@pytest.mark.parametrize(
    ("preferences", "words"),
    [
        (Preferences(theme="nope"), r"unknown theme 'nope'; themes are .*wavedeck"),
        (Preferences(keys={"app.quti": "Q"}), r"app\.quti.*did you mean 'app\.quit'"),
    ],
)
def test_unknown_theme_or_key_is_an_error_before_the_cockpit_opens(
    tmp_path: Path, preferences: Preferences, words: str
) -> None:
    with pytest.raises(Complaint, match=words):
        run_cockpit(home=tmp_path, session=None, mode="home", preferences=preferences)


@pytest.mark.parametrize(
    ("environ", "theme"),
    [
        ({"TERM": "xterm"}, "ansi-dark"),
        ({"TERM": "tmux-256color"}, "wavedeck"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "wavedeck"),
    ],
)
def test_terminal_with_16_colours_gets_its_own_palette(
    environ: dict[str, str], theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[str] = []
    monkeypatch.setattr(Cockpit, "run", lambda self, **_: chosen.append(self.theme))
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    run_cockpit(home=tmp_path, session=None, mode="home")
    assert chosen == [theme]


async def test_key_m_switches_the_mouse_and_shows_it() -> None:
    async with on_fleet(running()) as (pilot, app):
        screen = app.screen
        assert "mouse off" not in screen.header_bar.text
        await pilot.press("m")
        assert "mouse off" in screen.header_bar.text
        await pilot.press("m")
        assert "mouse off" not in screen.header_bar.text


async def test_unknown_session_is_notified_and_the_list_stays(home: Home) -> None:
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


async def test_themes_of_each_kind_can_draw() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        for theme in ("wavedeck-light", "ansi-dark", "nord"):
            app.theme = theme
            await pilot.press("enter", "d")
            assert isinstance(app.screen, AgentScreen)
            await pilot.press("escape")
            assert isinstance(app.screen, FleetScreen)


def test_cockpit_page_documents_every_key() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cockpit.md").read_text(encoding="utf-8")
    table = page.partition("## Keys")[2].partition("## Preferences")[0]
    assert {*re.findall(r"`([a-z_]+\.[a-z0-9_]+)`", table)} - {"config.toml"} == {*key_names()}
