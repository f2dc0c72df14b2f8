"""Cockpit on real sessions, with the real recorder, journal, store and decisions."""

from __future__ import annotations

import asyncio

from textual.pilot import Pilot
from textual.widgets import Static

from harness import Verdict
from sessions import Home
from sessions.catalog import journal_of
from sessions.events import DecisionMade, DecisionUndone
from sessions.files import FileLock
from sessions.state.folding import fold
from sessions.store.reconcile import record_at_rest as decide_at_rest
from sessions.store.store import Store
from tests.support.cockpit.cockpits import NARROW, USUAL, until
from tests.support.sessions import stored_sessions as stored
from tui.cockpit.app import Cockpit
from tui.cockpit.data.archive import read_archive
from tui.cockpit.desk.desk import Decider
from tui.cockpit.dialogs.dialogs import ReasonDialog
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.home.home import SessionTable
from tui.cockpit.screens.review.review import ReviewScreen
from tui.cockpit.viewer import ExitNote
from tui.facts.attempt import accepted_place


async def opened_agent(pilot: Pilot[ExitNote]) -> AgentScreen:
    app = pilot.app
    await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
    await until(pilot, lambda: app.feed is not None and bool(app.feed.state.instances), "events")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, AgentScreen), "the agent")
    return app.screen


async def test_session_that_ends_in_the_cockpit_is_shown_to_its_end(home: Home) -> None:
    recorder = stored.begin(home)
    app = Cockpit(home, session=stored.FIRST, mode="live")
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        stored.attempt(recorder, 1, Verdict.WRONG, message="differs")
        stored.attempt(recorder, 2, Verdict.CORRECT, source=stored.FAST)
        stored.finish(recorder)
        assert home.files(stored.FIRST).stored
        await until(pilot, lambda: app.feed is not None and app.feed.state.finished, "the end")
        assert app.feed.trouble() == ""

        screen = await opened_agent(pilot)
        await pilot.press("a", *"good", "enter")
        await until(pilot, lambda: "2C+" in screen.strip.text, "the decision, out of the store")
        await pilot.press("u")
        await until(pilot, lambda: "2C+" not in screen.strip.text, "the undoing")
    state = fold(journal_of(home, stored.FIRST).events)
    assert state.attempt("softmax#1/2").decision is None


async def test_finished_session_is_decided_at_the_end_of_its_replay(home: Home) -> None:
    session = stored.finished(home)
    app = Cockpit(home)
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: bool(app.screen.query_one(SessionTable).rows), "the list")
        await pilot.press("enter")
        screen = await opened_agent(pilot)
        assert app.feed.replay.at_end
        assert app.feed.state == fold(journal_of(home, session).events)
        assert "you can decide" in screen.header_bar.text
        await pilot.press("r")
        assert isinstance(app.screen, ReasonDialog)
        hint = str(app.screen.query_one("#hint", Static).render())
        assert "only into the record" in hint
        assert "reflector" not in hint, "no further prompt follows"
        await pilot.press(*"slow", "enter")
        await until(pilot, lambda: "2Cx" in screen.strip.text, "the decision")
        await asyncio.to_thread(
            decide_at_rest, home, session, DecisionUndone(attempt="softmax#1/2", by="kim")
        )
        await until(pilot, lambda: "2Cx" not in screen.strip.text, "the undoing in another shell")


async def test_winner_of_a_finished_session_is_accepted_on_review_and_written_where_it_says(
    home: Home,
) -> None:
    stored.finished(home)
    app = Cockpit(home)
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: bool(app.screen.query_one(SessionTable).rows), "the list")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        screen = ReviewScreen(read_archive=lambda: read_archive(home))
        app.push_screen(screen)
        await until(pilot, lambda: bool(screen.queue.rows), "the queue")
        assert screen.queue.cursor_key == "softmax#1/2"
        await until(pilot, lambda: screen.code.baseline is not None, "the suite's baseline")
        await until(pilot, lambda: "accepted: none" in screen.evidence.text, "the store's kernels")
        await pilot.press("a", *"fine", "enter")
        await until(
            pilot,
            lambda: "decided 1: 1 accepted, 0 rejected" in screen.decided.text,
            "the decision, out of the store",
        )
        store = Store.of(home)
        assert store.accepted()["starter/softmax"].attempt == "softmax#1/2"
        branch, _, path = accepted_place("starter/softmax").partition(":")
        head = store.repository.read_ref(f"refs/heads/{branch}")
        assert path in store.repository.read_tree(head)
        store.close()


async def test_parallel_decisions_are_recorded_in_order(home: Home) -> None:
    stored.stopped(home, verdict=Verdict.CORRECT)
    decider = Decider(home)
    async with asyncio.TaskGroup() as group:
        for accepted in (True, False, True):
            decision = DecisionMade(attempt="softmax#1/1", accepted=accepted)
            group.create_task(decider.give(stored.FIRST, decision))
        group.create_task(decider.give(stored.FIRST, DecisionUndone(attempt="softmax#1/1")))
    events = journal_of(home, stored.FIRST).events
    made = [event.accepted for event in events if isinstance(event, DecisionMade)]
    assert made == [True, False, True]
    assert fold(events).attempt("softmax#1/1").decision is None


async def test_stopped_session_accepts_decisions(home: Home) -> None:
    session = stored.stopped(home, verdict=Verdict.CORRECT)
    app = Cockpit(home, session=session, mode="live")
    async with app.run_test(size=USUAL) as pilot:
        screen = await opened_agent(pilot)
        assert f"wavedeck resume {session}" in screen.banner.text
        for key, mark in (("a", "1C+"), ("r", "1Cx")):
            await pilot.press(key, *"because", "enter")
            await until(pilot, lambda mark=mark: mark in screen.strip.text, mark)  # type: ignore[misc]
            assert "because" in screen.page.text
            await pilot.press("u")
            await until(pilot, lambda mark=mark: mark not in screen.strip.text, "the undoing")  # type: ignore[misc]
    decisions = [event for event in journal_of(home, session).events if isinstance(event, DecisionMade)]
    assert [(made.accepted, made.why) for made in decisions] == [(True, "because"), (False, "because")]


async def test_engine_without_an_answer_is_a_one_line_error(home: Home) -> None:
    stored.stopped(home)
    app = Cockpit(home, session=stored.FIRST, mode="live")
    async with app.run_test(size=USUAL) as pilot:
        screen = await opened_agent(pilot)
        lock = FileLock(home.files(stored.FIRST).lock)
        assert lock.acquire()
        await pilot.press("r", "enter")
        await until(
            pilot,
            lambda: any(notification.severity == "error" for notification in app._notifications),
            "the refusal",
        )
        (notification,) = [
            notification for notification in app._notifications if notification.severity == "error"
        ]
        assert "\n" not in notification.message
        assert "1W!" not in screen.strip.text
        lock.release()
