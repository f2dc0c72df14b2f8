"""Report screen: winners first, panes below, ways to other screens, files; live, in replay and over sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from sessions.events import AnyEvent, AttemptJudged
from tests.support.cockpit.cockpits import NARROW, USUAL, WIDE, ScriptedSource, live, replayed, until
from tests.support.cockpit.pictures import picture
from tests.support.sessions.measured_sessions import measured
from tui.cockpit.app import Cockpit
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.report.report import ReportScreen
from tui.cockpit.viewer import ExitNote

Opened = tuple[Pilot[ExitNote], Cockpit, ScriptedSource, ReportScreen]


@asynccontextmanager
async def opened(events: Sequence[AnyEvent], size: tuple[int, int] = NARROW) -> AsyncIterator[Opened]:
    """Open the Report of a running session with these events, by its key."""
    app, source = live(events)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "Fleet")
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, ReportScreen), "Report")
        await pilot.pause()
        yield pilot, app, source, app.screen


@pytest.mark.parametrize(("size", "key"), [(NARROW, "1"), (NARROW, "2"), (USUAL, "3"), (WIDE, "1")], ids=str)
async def test_pictures(size: tuple[int, int], key: str, snapshot: SnapshotAssertion) -> None:
    async with opened(measured(), size) as (pilot, app, _, _):
        await pilot.press(key)
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.pause()  # the tables of a pane are laid out after the pane
        assert picture(app) == snapshot


async def test_keys_lead_through_the_report_to_attempts_and_back() -> None:
    async with opened(measured()) as (pilot, app, _, screen):

        async def enter(attempt: str) -> None:
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, AgentScreen), "Agent")
            assert app.screen.attempt.attempt == attempt
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen, "Report again")

        assert screen.winners.cursor_key == "softmax#1/3"
        assert "accepted file  starter/softmax/kernel.py" in screen.detail.text
        await pilot.press("j")
        assert screen.detail.text.startswith("rms_norm#1/1")
        await pilot.press("k")
        await enter("softmax#1/3")
        await pilot.press("G")
        assert "ended: budget spent" in screen.detail.text
        await enter("matmul#1/1")
        await pilot.press("g", "x")
        assert screen.panes["attempts"].table.has_focus
        assert screen.panes["attempts"].table.cursor_key == "softmax#1/1"
        await pilot.press("w")
        assert screen.winners.has_focus
        assert screen.winners.cursor_key == "rms_norm#1/1"
        await pilot.press("5")
        table = screen.panes["decisions"].table
        assert table.has_focus
        assert [cell.text for cell in table.rows[0].cells][2:] == [
            "accepted",
            "ada",
            "2026-11-20 14:04",
            "reads once",
        ]
        await enter("softmax#1/3")
        await pilot.press("6", "enter", "L")
        await pilot.pause()
        assert app.screen is screen, "rows of cost have no attempt"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "Fleet again")


async def test_chosen_pane_has_the_body_and_shows_the_texts_that_its_table_cuts() -> None:
    async with opened(measured(), USUAL) as (pilot, _, _, screen):
        await pilot.press("3")
        await pilot.pause()
        table = screen.panes["attempts"].table
        assert not screen.winners.display
        assert table.size.height > len(table.rows), "all attempts are on screen at once"
        longest = max(table.rows, key=lambda row: len(row.cells[-1].text))
        text = longest.cells[-1].text
        assert text not in table.text
        table.select(longest.key)
        await pilot.pause()
        assert text in " ".join(screen.detail.text.split())
        await pilot.press("6", "5")
        await pilot.pause()
        assert text not in " ".join(screen.detail.text.split()), "no row of another pane"


async def test_new_verdict_changes_an_open_report() -> None:
    events = measured()
    names = [event.attempt if isinstance(event, AttemptJudged) else "" for event in events]
    best = names.index("softmax#1/3")
    async with opened(events[:best]) as (pilot, app, source, screen):
        assert [winner.attempt for winner in screen.report.winners] == ["softmax#1/2"]
        source.pending = list(events[best:])
        app.frame()
        await pilot.pause()
        assert "softmax" in screen.winners.text.splitlines()[1]
        assert screen.winners.rows[0].key == "softmax#1/3"


async def test_replay_shows_the_report_as_it_was_then() -> None:
    app = replayed(measured())
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "Fleet")
        await pilot.press("dollar_sign", "R")
        await until(pilot, lambda: isinstance(app.screen, ReportScreen), "Report")
        assert "2 of 3 solved" in app.screen.summary.text
        await pilot.press("0")
        await pilot.pause()
        assert "0 judged" in app.screen.summary.text
        assert app.screen.winners.empty == "There is no winner. No attempt was judged yet."
