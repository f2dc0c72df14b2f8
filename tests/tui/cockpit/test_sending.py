"""Commands that take long: the person leaves the cockpit, or goes on elsewhere, before they have an answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from sessions import Home
from sessions.catalog import journal_of
from sessions.state.folding import fold
from tests.support.cockpit.cockpits import USUAL, until
from tests.support.sessions import stored_sessions as stored
from tests.support.waiting import await_until
from tui.actions import send
from tui.actions.line import Order
from tui.cockpit.app import Cockpit
from tui.cockpit.dialogs.line_prompt import LinePrompt
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.viewer import ExitNote
from tui.commands.look import cockpit as command

Opened = tuple[Pilot[ExitNote], Cockpit]
ACCEPT = Order("accept", attempt="softmax#1/2", text="fine")
TITLE = Order("title", text="two words")


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Holds each command back until it is set."""
    gate = asyncio.Event()
    give = send.give

    async def give_later(*arguments: Any, **options: Any) -> None:
        await gate.wait()
        await give(*arguments, **options)

    monkeypatch.setattr(send, "give", give_later)
    return gate


@asynccontextmanager
async def replay(home: Home) -> AsyncIterator[Opened]:
    """Open the first of two finished sessions."""
    stored.finished(home)
    stored.finished(home, stored.SECOND)
    app = Cockpit(home)
    async with app.run_test(size=USUAL) as pilot:
        app.open_session(stored.FIRST)
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the replay")
        yield pilot, app


def toasts(app: Cockpit) -> str:
    return "\n".join(toast.message for toast in app._notifications)


async def test_cockpit_sends_all_commands_before_it_leaves(home: Home, gate: asyncio.Event) -> None:
    async with replay(home) as (pilot, app):
        app.commander.carry_out(ACCEPT)
        app.commander.carry_out(TITLE)
        await pilot.press("q")
        assert "sending 2 commands, then leaving; q again leaves without them" in toasts(app)
        gate.set()
        await await_until(lambda: app.return_value is not None, "the end of the cockpit")
    assert app.return_value.unsent == ()
    state = fold(journal_of(home, stored.FIRST).events)
    assert state.attempt("softmax#1/2").decision is not None
    assert state.title == "two words"


async def test_second_q_leaves_at_once_and_names_what_was_not_sent(home: Home, gate: asyncio.Event) -> None:
    async with replay(home) as (pilot, app):
        app.commander.carry_out(ACCEPT)
        app.commander.carry_out(TITLE)
        await pilot.press("q", "q")
        assert app.return_value.unsent == (
            f"not known whether {stored.FIRST} has: accept softmax#1/2",
            f"not sent to {stored.FIRST}: title the session",
        )


async def test_refused_command_keeps_the_cockpit_open(home: Home, gate: asyncio.Event) -> None:
    async with replay(home) as (pilot, app):
        app.commander.carry_out(Order("accept", attempt="softmax#1/9"))
        await pilot.press("q")
        gate.set()
        await until(pilot, lambda: "the cockpit stays open" in toasts(app), "the words")
        assert "softmax#1/9" in toasts(app)
        assert app.return_value is None


def test_commands_that_were_not_sent_are_printed_after_the_end_of_a_session(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session = stored.finished(home)
    note = ExitNote(unsent=(f"not sent to {session}: accept softmax#1/2",))
    monkeypatch.setattr(command, "run_cockpit", lambda **_: note)
    command.open_cockpit(os.environ, session=session, mode="live")
    assert note.unsent[0] in capsys.readouterr().err


@pytest.fixture
def resumed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sessions that would have got an engine."""
    resumed: list[str] = []
    monkeypatch.setattr(send, "plan_at_rest", lambda *_: None)
    monkeypatch.setattr(send, "resume", lambda _, session: resumed.append(session))
    return resumed


async def test_fork_does_not_take_a_person_back_to_a_session_that_they_left(
    home: Home, gate: asyncio.Event, resumed: list[str]
) -> None:
    async with replay(home) as (pilot, app):
        app.commander.carry_out(Order("fork", attempt="softmax#1/2"))
        app.leave_session()
        app.open_session(stored.SECOND)
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the other session")
        screen = app.screen
        gate.set()
        await until(pilot, lambda: f"{stored.FIRST} goes on; open it at Home" in toasts(app), "the words")
        assert resumed == [stored.FIRST]
        assert app.screen is screen
        assert app.feed is not None
        assert app.feed.session == stored.SECOND


async def test_fork_shows_its_session_only_after_the_line_has_closed(
    home: Home, gate: asyncio.Event, resumed: list[str]
) -> None:
    async with replay(home) as (pilot, app):
        app.commander.carry_out(Order("fork", attempt="softmax#1/2"))
        await pilot.press("colon", *"hin")
        gate.set()
        await until(pilot, lambda: "a new instance starts" in toasts(app), "the fork")
        await pilot.press("t")
        assert isinstance(app.screen, LinePrompt)
        assert app.screen.query_one(Input).value == "hint"
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.feed is not None and app.feed.live is not None, "the live session")
        assert resumed == [stored.FIRST]
