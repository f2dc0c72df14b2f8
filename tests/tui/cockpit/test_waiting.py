"""Words and clocks while a person waits: they name the stage and its time, and stay true."""

from __future__ import annotations

import threading

import pytest

from sessions import events as ev
from sessions.state.folding import fold
from tests.support.cockpit.cockpits import NARROW, USUAL, WIDE, on_fleet, replayed, until
from tests.support.cockpit.pictures import picture
from tests.support.cockpit.stories import open_story
from tests.support.sessions import fleets, story
from tests.support.sessions.journals import SESSION, EventLog
from tests.support.waiting import LIMIT_S
from tui.cockpit.app import Cockpit
from tui.cockpit.data.replays import Story
from tui.cockpit.data.sources import TailHealth
from tui.cockpit.data.steps import steps_of
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.widgets.line_view import LineView
from tui.facts.attention import attention
from tui.facts.doing import preparing


def preparing_log() -> EventLog:
    """Return the events of a session up to the compile stage of the baseline of softmax."""
    log = fleets.opened(tasks=("softmax", "rope"), instances=2, gpus=1)
    log.add(ev.BaselineStageStarted(task="starter/softmax", stage="compile"))
    return log


def test_session_without_instances_starts_its_judge() -> None:
    log = EventLog()
    log.open()
    assert preparing(fold(log.events).preparing, log.wall + 5.0) == ["starting the judge, 0:05"]
    log.add(ev.EngineStopped(reason="no GPU"))
    assert fold(log.events).preparing == ()


async def test_fleet_says_which_tests_are_recorded_which_wait_and_which_task_is_left_out() -> None:
    log = fleets.opened(tasks=(), gpus=1)
    names = ("softmax", "rope", "flip", "matmul")
    log.events[0] = story.changed(log.events[0], tasks=tuple(f"starter/{name}" for name in names))
    for task in ("starter/softmax", "starter/rope"):
        log.add(ev.BaselineStageStarted(task=task, stage=ev.RECORDING))
    log.add(ev.TaskLeftOut(task="starter/rope", why="`out` has the dtype complex64"))
    async with on_fleet(log.events, size=WIDE, wall=lambda: log.wall) as (pilot, app):
        screen = app.screen
        words = "recording the test of softmax"
        await until(pilot, lambda: words in screen.next.text, "the test that is recorded")
        assert "recording the test of rope" not in screen.next.text
        assert "tests that wait to be recorded: 2" in screen.next.text
        assert "starter/rope is left out: `out` has the dtype complex64" in screen.banner.text


async def test_fleet_says_what_is_prepared_and_the_clock_goes_on_without_events() -> None:
    log = preparing_log()
    now = [log.wall + 12.0]
    async with on_fleet(log.events, size=WIDE, wall=lambda: now[0]) as (pilot, app):
        screen = app.screen
        words = "judging the baseline of softmax: compile, 0:12"
        await until(pilot, lambda: words in screen.next.text, "the stage of the baseline")
        assert "Next 0" in screen.next_title.text
        worked = fold(log.events).worked_s
        assert f"0:{int(worked) + 12:02}" in screen.header_bar.text
        now[0] += 7.0
        screen.repaint(frozenset())
        assert "compile, 0:19" in screen.next.text
        assert f"0:{int(worked) + 19:02}" in screen.header_bar.text
        await pilot.press("3", "enter")
        assert app.screen is screen, "nothing to open"


def test_end_of_a_replay_has_no_time_since_the_engine_ended() -> None:
    log = fleets.busy()
    log.add(ev.EngineStopped(reason="stopped by ada"))
    [words] = [
        concern.words
        for concern in attention(fold(log.events), now_wall=log.wall, health=TailHealth(running=False))
        if concern.words.startswith("ENGINE")
    ]
    assert words == "ENGINE ENDED: stopped by ada"


def two_waiting() -> EventLog:
    """Return a session in which one attempt of each of two tasks waits for a person, and one of a third does not."""
    log = fleets.opened(tasks=("softmax", "rope", "swiglu"), instances=1, gpus=1)
    for task in ("softmax", "swiglu"):
        fleets.judge(log, f"{task}#1/1", fleets.measured(1.5))
        log.add(ev.WaitingForPerson(attempt=f"{task}#1/1"), after_s=1.0)
    fleets.judge(log, "rope#1/1", fleets.measured(1.2))
    return log


async def test_next_waiting_goes_round_in_fleet_and_from_one_instance_to_another() -> None:
    async with on_fleet(two_waiting().events) as (pilot, app):
        fleet = app.screen
        seen = []
        for _ in range(3):
            await pilot.press("w")
            seen.append(fleet.tasks.cell_key)
        assert set(seen) == {"softmax#1", "swiglu#1"}
        assert seen[0] == seen[2] != seen[1]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "an instance")
        await pilot.press("w")
        await until(
            pilot, lambda: isinstance(app.screen, AgentScreen) and app.screen.key == seen[1], "the other"
        )


async def test_filter_of_fleet_reads_fields_and_says_that_nothing_matches() -> None:
    async with on_fleet(two_waiting().events) as (_, app):
        screen = app.screen
        assert screen.tasks.find("review") == screen.tasks.find("state:review") == "2 of 3 rows"
        assert screen.tasks.find("task:rope -state:review") == "1 of 3 rows"
        assert "no field" in screen.tasks.find("weather:fine")
        assert screen.tasks.find("absent") == "0 of 3 rows"
        assert "No row matches the filter" in "".join(segment.text for segment in screen.tasks.render_line(0))


def test_steps_have_the_result_of_a_sweep() -> None:
    log = EventLog()
    log.open()
    fleets.judge(log, "softmax#1/1", fleets.measured(1.5))
    swept = ev.AttemptSwept(
        attempt="softmax#1/1",
        target="sm_90",
        tried=12,
        pruned={"need too much shared memory": 3},
        variants=(ev.SweptVariant(changes=("num_warps 4 to 8",), source="x", better=False),),
    )
    log.add(swept)
    log.add(ev.SweepRung(attempt="softmax#1/1", rung=1, pairs=1, entries=()))
    [step] = [step for step in steps_of(fold(log.events).attempt("softmax#1/1")) if step.name == "sweep"]
    assert step.facts == "12 variants compiled, none looks better"
    assert step.text.splitlines() == [
        "rung 1: 0 of 0 variants kept",
        "dropped: 3 need too much shared memory",
        "num_warps 4 to 8",
    ]


def held_back(events: list[ev.AnyEvent], **doors: object) -> tuple[Cockpit, threading.Event]:
    """Return a replay that reads its story only after the event is set."""
    app, go_on = replayed(events), threading.Event()
    load = app._doors.load_story

    def load_later(session: str) -> Story:
        assert go_on.wait(LIMIT_S)
        return load(session)

    vars(app._doors).update(load_story=load_later, **doors)
    return app, go_on


async def test_replay_shows_the_beginning_while_the_rest_is_read() -> None:
    events = fleets.busy().events
    beginning = open_story(SESSION, events[: len(events) // 2], is_whole=False)
    app, go_on = held_back(events, load_beginning=lambda _: beginning)
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the replay")
        timeline = app.screen.query_one("#timeline", LineView)
        await until(pilot, lambda: "reading the rest" in timeline.text, "a time line without an end")
        go_on.set()
        feed = app.feed
        assert feed is not None
        await until(pilot, lambda: feed.replay is not None and feed.replay.story.is_whole, "the rest")
        await pilot.press("full_stop")
        await until(pilot, lambda: f"/{len(events)}\n" in timeline.text, "the whole session")
        tasks = app.screen.tasks
        await until(pilot, lambda: tasks.size.height > len(tasks.rows), "room for all tasks beside the lanes")


@pytest.mark.parametrize(
    ("readonly", "words"),
    [(False, "? waits for you: a accepts, r rejects"), (True, "? waits for a person's decision")],
)
async def test_verdict_names_keys_of_a_decision_only_where_they_work(*, readonly: bool, words: str) -> None:
    async with on_fleet(two_waiting().events, readonly=readonly) as (pilot, app):
        await pilot.press("w", "enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "an instance")
        assert app.screen.page.text.splitlines()[0] == words


async def test_header_names_a_session_without_events() -> None:
    async with on_fleet([], size=NARROW) as (pilot, app):
        for size in (NARROW, (110, 30), WIDE):
            await pilot.resize_terminal(*size)
            assert SESSION in picture(app).splitlines()[0]
            assert not app.screen.show_vertical_scrollbar
