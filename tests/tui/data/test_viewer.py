"""Sessions opened one after another: the last one stays, and the earlier ones leave no objects behind."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import pytest

from tests.support.cockpit.cockpits import USUAL, at_home, until
from tests.support.cockpit.stories import read_story
from tests.support.sessions.journals import finished
from tui.cockpit.data.replays import Story
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.home.home import HomeScreen


async def test_late_load_does_not_replace_the_session_that_was_opened_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, released = threading.Event(), threading.Event()

    def load(name: str) -> Story:
        if name == "slow":
            begun.set()
            released.wait()
        return read_story(name, finished())

    app = at_home(list, load=load)
    done: list[str] = []
    call = app.call_from_thread

    def recorded(function: Callable[..., object], *arguments: object, **more: object) -> None:
        call(function, *arguments, **more)
        done.append(function.__name__.strip("_"))

    monkeypatch.setattr(app, "call_from_thread", recorded)
    async with app.run_test(size=USUAL) as pilot:
        app.open_session("slow")
        await until(pilot, begun.is_set, "the slow load")
        app.open_session("fast")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        released.set()
        await until(pilot, lambda: done.count("watch") == 2, "the end of both loads")
        assert app.feed.session == "fast"


async def test_closed_session_leaves_neither_screens_nor_a_replay() -> None:
    def load(name: str) -> Story:
        return read_story(name, finished())

    app = at_home(list, load=load)
    async with app.run_test(size=USUAL) as pilot:
        app.open_session("one")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        app.open_agent("softmax#1")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "the agent")
        closed = list(map(weakref.ref, (*app.screen_stack[2:], app.feed, app.feed.replay)))
        app.leave_session()
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "Home")
        await until(pilot, lambda: gc.collect() >= 0 and not any(gone() for gone in closed), "free objects")
