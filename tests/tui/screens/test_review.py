"""The Review screen: queue, evidence, decisions and what follows from them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot
from textual.widgets import Static

from harness import Verdict
from harness.wire.results.provenance import Provenance
from sessions import events as ev
from sessions.best_ever import BestEver
from sessions.state.bests import MeasuredBest
from sessions.state.speed import Speed
from sessions.store.store import AcceptedKernel
from tests.support.cockpit.cockpits import (
    NARROW,
    USUAL,
    WIDE,
    RecordingDecider,
    ScriptedSource,
    live,
    replayed,
    until,
)
from tests.support.cockpit.pictures import picture
from tests.support.sessions import reviews, story
from tests.support.sessions.journals import RIGHT_SOURCE, SESSION, EventLog, examined, finished
from tui.actions.send import login_name
from tui.cockpit.app import Cockpit
from tui.cockpit.data.archive import Archive
from tui.cockpit.dialogs.dialogs import ReasonDialog
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.review.review import ReviewScreen
from tui.cockpit.viewer import ExitNote


def archive() -> Archive:
    """Return one accepted kernel and one best of other sessions."""
    best = MeasuredBest(
        task="starter/softmax",
        attempt="softmax#4/2",
        confirmed=False,
        speed=Speed(4.1, 4.0, 4.2, "", 4, 4),
        product="MI300X",
        against="triton",
        provenance=Provenance(python="3.11.9", torch="2.13.0", triton="3.7.1"),
    )
    session = "20261118-090000-geak-1a2b"
    kernel = AcceptedKernel(
        session=session,
        attempt="vector_add#2/3",
        commit="c0ffee",
        why="",
        by="kim",
        wall=0.0,
        verdict=Verdict.CORRECT,
    )
    return Archive({"starter/vector_add": kernel}, [BestEver(session, best)])


class Review:
    """A Review screen over events from memory, and a journal that a test continues."""

    def __init__(self, pilot: Pilot[ExitNote], screen: ReviewScreen, source: ScriptedSource, log: EventLog):
        self.pilot = pilot
        self.screen = screen
        self._source = source
        self._log = log

    @property
    def app(self) -> Cockpit:
        return self.pilot.app

    @property
    def cursor(self) -> str | None:
        return self.screen.queue.cursor_key

    @property
    def toasts(self) -> list[str]:
        return [note.message for note in self.app._notifications]

    async def hears(self, *events: ev.AnyEvent) -> None:
        """Append events to the session and draw."""
        before = len(self._log.events)
        for event in events:
            self._log.add(event, after_s=1.0)
        self._source.pending += self._log.events[before:]
        self.app.frame()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()


@asynccontextmanager
async def review(
    events: Sequence[ev.AnyEvent],
    *,
    size: tuple[int, int] = USUAL,
    decider: RecordingDecider | None = None,
    readonly: bool = False,
    baseline: str = "",
) -> AsyncIterator[Review]:
    """Open Review on a running session, at the moment of its last event."""
    started, *rest = events
    if baseline:
        started = story.changed(started, against="triton", against_source=baseline)
    log = EventLog(wall=events[-1].wall, events=[started, *rest])
    app, source = live(log.events, decider=decider, readonly=readonly, wall=lambda: log.wall)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.feed is not None and bool(app.feed.state.instances), "events")
        screen = ReviewScreen(read_archive=archive)
        app.push_screen(screen)
        await pilot.pause()
        if baseline and screen.queue.rows:
            await until(pilot, lambda: screen.code.baseline is not None, "the baseline")
            await until(pilot, lambda: screen._archive is not None, "the other sessions")
        yield Review(pilot, screen, source, log)


@pytest.mark.parametrize("size", [NARROW, USUAL, WIDE])
async def test_picture(size: tuple[int, int], snapshot: SnapshotAssertion) -> None:
    async with review(reviews.waiting(), size=size, baseline=RIGHT_SOURCE) as opened:
        assert picture(opened.app) == snapshot


async def test_rejection_asks_for_the_reason_and_the_next_attempt_opens_when_it_is_recorded() -> None:
    decider = RecordingDecider()
    async with review(reviews.waiting(), decider=decider) as opened:
        assert opened.cursor == "softmax#1/3"
        await opened.press("r")
        dialog = opened.app.screen
        assert isinstance(dialog, ReasonDialog)
        assert "into the next prompt of softmax#1" in str(dialog.query_one("#hint", Static).render())
        await opened.press(*"slow", "enter")
        assert decider.decisions == [(SESSION, "softmax#1/3", False, "slow")]
        assert opened.cursor == "softmax#1/3", "not before the session has it"
        await opened.hears(
            ev.DecisionMade(attempt="softmax#1/3", accepted=False, why="slow", by=login_name())
        )
        assert opened.cursor == "vector_add#1/1"
        assert "decided 3" in opened.screen.decided.text
        await opened.press("u")
        assert decider.decisions[-1] == (SESSION, "softmax#1/3", None)


async def test_last_waiting_attempt_stays_open_after_its_decision_although_others_are_undecided() -> None:
    events = reviews.waiting()
    log = EventLog(wall=events[-1].wall, events=events)
    log.add(ev.DecisionUndone(attempt="softmax#2/1", by="kim"))
    log.add(ev.DecisionMade(attempt="vector_add#1/1", accepted=True, by="kim"))
    async with review(log.events, decider=RecordingDecider()) as opened:
        assert opened.cursor == "softmax#1/3"
        await opened.press("a", "enter")
        await opened.hears(ev.DecisionMade(attempt="softmax#1/3", accepted=True, by=login_name()))
        assert opened.cursor == "softmax#1/3", "softmax#2/1 is undecided, but nothing waits"
        assert "softmax#1 goes on" in str(opened.screen.evidence.border_title)


async def test_decision_about_an_ended_instance_leads_to_the_next_one_and_last_to_the_first() -> None:
    log = EventLog()
    log.open(devices=("2",))
    for instance in (1, 2, 3):
        log.add(ev.InstanceStarted(task="starter/softmax", instance=instance))
        log.attempt(f"softmax#{instance}/1", RIGHT_SOURCE, reviews.candidate(1.2))
        log.add(ev.InstanceFinished(task="starter/softmax", instance=instance, reason="iterations"))
    async with review(log.events, decider=RecordingDecider()) as opened:
        await opened.press("j")
        for decided, following in (("softmax#2/1", "softmax#3/1"), ("softmax#3/1", "softmax#1/1")):
            assert opened.cursor == decided
            await opened.press("a", "enter")
            await opened.hears(ev.DecisionMade(attempt=decided, accepted=True, by=login_name()))
            assert opened.cursor == following


async def test_acceptance_says_where_the_kernel_goes() -> None:
    decider = RecordingDecider()
    async with review(reviews.waiting(), decider=decider) as opened:
        assert "accepted:starter/softmax/kernel.py" in opened.screen.decided.text
        await opened.press("a")
        hint = str(opened.app.screen.query_one("#hint", Static).render())
        assert "the store gets accepted:starter/softmax/kernel.py instead of #1/1" in hint
        await opened.press("enter")
        assert decider.decisions == [(SESSION, "softmax#1/3", True, "")]


async def test_refused_decision_keeps_the_attempt_open() -> None:
    async with review(reviews.waiting(), decider=RecordingDecider(refusal="the engine is gone")) as opened:
        await opened.press("a", "enter")
        await until(opened.pilot, lambda: bool(opened.toasts), "the refusal")
        assert "the engine is gone" in opened.toasts[-1]
        assert opened.cursor == "softmax#1/3"


async def test_decision_of_another_person_is_seen_and_not_overwritten() -> None:
    decider = RecordingDecider()
    async with review(reviews.waiting(), decider=decider) as opened:
        await opened.press("r")
        await opened.hears(ev.DecisionMade(attempt="softmax#1/3", accepted=True, why="fast", by="kim"))
        await opened.press(*"no", "enter")
        assert decider.decisions == []
        assert "meanwhile accepted by kim" in opened.toasts[-1]
        assert opened.cursor == "softmax#1/3", "the person stays there and sees why"
        assert "accepted by kim 0:00 ago: fast" in opened.screen.evidence.text


async def test_decision_of_another_person_that_comes_first_does_not_lead_on() -> None:
    async with review(reviews.waiting(), decider=RecordingDecider()) as opened:
        await opened.press("r", "enter")
        await opened.hears(ev.DecisionMade(attempt="softmax#1/3", accepted=True, by="kim"))
        assert opened.cursor == "softmax#1/3"


async def test_read_only_view_has_no_decision_keys_and_says_why() -> None:
    async with review(reviews.waiting(), readonly=True) as opened:
        assert "accept" not in opened.screen.query_one("KeyBar").text
        await opened.press("a")
        assert not isinstance(opened.app.screen, ReasonDialog)
        assert opened.toasts == ["accept: not possible: this view is for reading only"]


async def test_new_waiting_attempt_does_not_move_the_cursor() -> None:
    async with review(reviews.waiting()) as opened:
        await opened.press("j")
        assert opened.cursor == "vector_add#1/1"
        await opened.hears(ev.DecisionUndone(attempt="softmax#2/1", by="kim"))
        assert opened.cursor == "vector_add#1/1"
        await opened.hears(ev.DecisionMade(attempt="softmax#1/3", accepted=True, by="kim"))
        assert opened.cursor == "vector_add#1/1"


async def test_waits_grow_without_events_and_enter_opens_the_attempt() -> None:
    async with review(reviews.waiting()) as opened:
        assert "? 4:19" in opened.screen.queue.text
        opened._log.wall += 61
        opened.app.frame()
        await opened.pilot.pause()
        assert "? 5:20" in opened.screen.queue.text
        await opened.press("enter")
        agent = opened.app.screen
        assert isinstance(agent, AgentScreen)
        assert agent.attempt.attempt == "softmax#1/3"


async def test_diff_goes_from_base_to_baseline_to_code() -> None:
    baseline = RIGHT_SOURCE.replace("tl.exp", "tl.math.exp")
    async with review(reviews.waiting(), baseline=baseline) as opened:
        titles = []
        for _ in range(4):
            titles.append(str(opened.screen.code.border_title).partition(" ->")[0].partition("  ")[0])
            await opened.press("d")
        assert titles == ["diff base #1/1", "diff baseline triton", "code #1/3", "diff base #1/1"]


async def test_past_of_a_replay_is_not_decided() -> None:
    app = replayed(finished())
    app.readonly = False
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: app.feed is not None, "the replay")
        app.push_screen(ReviewScreen())
        await pilot.press("a")
        assert "its end only" in [note.message for note in app._notifications][-1]
        await pilot.press("dollar_sign")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, ReviewScreen)
        assert screen.queue.cursor_key == "softmax#1/3"
        assert "accept" in screen.query_one("KeyBar").text, "before the keys of the replay"
        await pilot.press("r")
        assert isinstance(app.screen, ReasonDialog)
        assert "only into the record" in str(app.screen.query_one("#hint", Static).render())
        dialog = app.screen.query_one("#dialog").region
        assert dialog.height < NARROW[1] - 4


async def test_line_to_answer_on_is_in_view_however_much_there_is_to_say() -> None:
    events = reviews.waiting()
    state = EventLog(wall=events[-1].wall, events=events)
    failed = examined(Verdict.WRONG)
    error = msgspec.structs.replace(failed.error, message="output y of case fp16 wide differs, " * 40)
    state.exam("softmax#1/3", msgspec.structs.replace(failed, error=error))
    async with review(state.events, size=NARROW) as opened:
        for key in ("a", "r"):
            await opened.press(key)
            dialog = opened.app.screen.query_one("#dialog").region
            for part in ("#why", "#hint"):
                assert dialog.contains_region(opened.app.screen.query_one(part).region)
            assert dialog.bottom <= NARROW[1]
            await opened.press("escape")


async def test_toasts_cover_no_table_and_no_bar() -> None:
    log = EventLog(wall=finished()[-1].wall, events=finished())
    log.add(ev.Notice(level="warning", message="3 calls were repeated"))
    app = replayed(log.events)
    async with app.run_test(size=NARROW, notifications=True) as pilot:
        await until(pilot, lambda: app.feed is not None, "the replay")
        screen = ReviewScreen()
        app.push_screen(screen)
        await pilot.press("dollar_sign")
        app.refuse(
            "not decided",
            "meanwhile rejected by kim at 2026-11-20 14:03 UTC: not readable; undo that first, or leave it",
        )
        await until(pilot, lambda: bool(screen.query("Toast")), "the toast")
        assert screen.banner.display
        free = (
            screen.header_bar, screen.screens_bar, screen.decided, screen.banner, screen.timeline,
            screen.query_one("KeyBar"),
        )  # fmt: skip
        for toast in screen.query("Toast"):
            assert not any(toast.region.overlaps(bar.region) for bar in free)
            assert not any(
                toast.region.overlaps(pane.content_region) for pane in screen.query("LineTable, LineView")
            )
