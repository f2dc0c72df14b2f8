"""Text pictures of every screen: eighty instances on eight GPUs at two sizes, few instances with and without a GPU at one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from benchmarks.generated_session.eighty_instances import session
from sessions import Home
from sessions.events import AnyEvent
from tests.support.cockpit.cockpits import NARROW, WIDE, live, on_home, replayed, until
from tests.support.cockpit.pictures import picture
from tests.tui.screens.test_home import INFOS
from tests.tui.screens.test_new_run import CPU_NODE, form, opened
from tui.cockpit.app import Cockpit
from tui.cockpit.viewer import ExitNote

SIZES = {"80x24": NARROW, "120x40": (120, 40), "160x48": WIDE}
SESSIONS = {"80": (20, 4, 8), "3": (3, 2, 3), "0": (3, 2, 0)}
"""Tasks, instances of each and GPUs by the name of the session."""
PICTURES = (("80", "80x24"), ("80", "160x48"), ("3", "120x40"), ("0", "80x24"))
"""Session and size of each walk through the screens."""
SECONDS_LATER = 12.0
WALK = {
    "fleet": (), "agent": ("w", "enter"), "code": ("2",), "diff": ("d",), "verdict": ("3",),
    "latency": ("L",), "review": ("V",), "report": ("F", "R"),
}  # fmt: skip
"""Keys that lead from one picture to the next."""


@cache
def events_of(name: str) -> list[AnyEvent]:
    tasks, instances, gpus = SESSIONS[name]
    return session(tasks, instances, gpus)


@asynccontextmanager
async def cockpit(
    events: list[AnyEvent], size: tuple[int, int], theme: str = "wavedeck"
) -> AsyncIterator[tuple[Pilot[ExitNote], Cockpit]]:
    """Open Fleet of a running session, some seconds after its last event."""
    app, _ = live(events, wall=lambda: events[-1].wall + SECONDS_LATER)
    app.theme = theme
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.feed is not None and bool(app.feed.state.instances), "events")
        yield pilot, app


async def walk(pilot: Pilot[ExitNote], app: Cockpit) -> AsyncIterator[tuple[str, str]]:
    """Yield the name and the picture of each screen."""
    for name, keys in WALK.items():
        await pilot.press(*keys)
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        yield name, picture(app)


@pytest.mark.parametrize(("name", "size"), PICTURES)
async def test_pictures(name: str, size: str, snapshot: SnapshotAssertion) -> None:
    async with cockpit(events_of(name), SIZES[size]) as (pilot, app):
        async for screen, shown in walk(pilot, app):
            assert shown == snapshot(name=screen)


async def test_picture_of_a_replay(snapshot: SnapshotAssertion) -> None:
    app = replayed(events_of("80"))
    async with app.run_test(size=SIZES["120x40"]) as pilot:
        await until(pilot, lambda: app.feed is not None, "the replay")
        await pilot.press("p", *["right_parenthesis"] * 40)
        await pilot.pause()
        assert picture(app) == snapshot


async def test_drawing_changes_alone_leaves_nothing_old_on_the_screen() -> None:
    events = events_of("80")
    half = len(events) // 2
    app, source = live(events[:half], wall=lambda: app.feed.state.last_wall if app.feed else 0.0)
    async with app.run_test(size=SIZES["120x40"]) as pilot:
        await until(pilot, lambda: app.feed is not None and bool(app.feed.state.instances), "events")
        for start in range(half, len(events), 400):
            source.pending += events[start : start + 400]
            app.frame()
            await pilot.pause()
        drawn = picture(app)
        app.screen.refresh(layout=True)
        await pilot.pause()
        assert picture(app) == drawn


def colours(app: Cockpit) -> str:
    return picture(app).partition("\n-- colours\n")[2]


async def colours_of_all_screens(theme: str, home: Home) -> dict[str, str]:
    """Return the meaning of the colours of each screen."""
    shown = {}
    app = form(home, node=CPU_NODE)
    app.theme = theme
    async with app.run_test(size=SIZES["120x40"]) as pilot:
        await opened(app, pilot)
        shown["new run"] = colours(app)
    async with on_home(lambda: INFOS, size=SIZES["120x40"]) as (pilot, app):
        app.theme = theme
        await pilot.pause()
        shown["home"] = colours(app)
    async with cockpit(events_of("3"), SIZES["120x40"], theme) as (pilot, app):
        async for name, _ in walk(pilot, app):
            shown[name] = colours(app)
    return shown


@pytest.mark.soak
async def test_colours_mean_the_same_in_the_light_theme(home: Home) -> None:
    dark = await colours_of_all_screens("wavedeck", home)
    assert await colours_of_all_screens("wavedeck-light", home) == dark
