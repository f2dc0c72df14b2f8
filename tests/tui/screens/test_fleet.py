"""Fleet: a row a task, a cell an instance, the GPUs, what needs a person, and the keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from harness import Verdict
from sessions import events as ev
from sessions.events import EndReason
from sessions.state.folding import fold
from sessions.state.state import SessionState
from tests.support.cockpit.cockpits import NARROW, USUAL, WIDE, ScriptedSource, live, on_fleet, until
from tests.support.cockpit.pictures import picture
from tests.support.sessions import fleets, story
from tests.support.sessions.journals import EventLog, correct, finished, running, wrong
from tui.cockpit.app import ExitNote
from tui.cockpit.draw.grid import heading, places, row_line
from tui.cockpit.draw.lines import plain
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet import device_view, fleet_view
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.fleet.fleet_model import FleetModel
from tui.cockpit.screens.fleet.fleet_view import TaskFacts, task_facts
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.screens.review.review import ReviewScreen
from tui.facts.instance import FactsCache, instance_facts
from tui.facts.vocabulary import clock

Opened = tuple[Pilot[ExitNote], FleetScreen, ScriptedSource]


@asynccontextmanager
async def fleet(log: EventLog, size: tuple[int, int] = USUAL) -> AsyncIterator[Opened]:
    """Open Fleet on these events, four minutes after the last of them."""
    app, source = live(log.events, wall=lambda: log.wall + 240.0)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await until(pilot, lambda: "4:" in app.screen.next.text or not app.screen.next.rows, "times")
        yield pilot, app.screen, source


def tasks_of(state: SessionState, *, is_abandoned: bool = False) -> list[TaskFacts]:
    by_task: dict[str, list[object]] = {}
    for instance in state.instances.values():
        facts = instance_facts(state, instance, is_abandoned=is_abandoned)
        by_task.setdefault(instance.task, []).append(facts)
    return [task_facts(task, facts) for task, facts in by_task.items()]


def rows_of(
    log: EventLog, *, width: int = 157, changes: dict[str, str] | None = None, is_abandoned: bool = False
) -> list[str]:
    tasks = tasks_of(fold(log.events), is_abandoned=is_abandoned)
    _, table = fleet_view.fleet_table(tasks, width, changes=changes or {}, worked_s=240.0)
    placed = places(table.columns, table.rows, width)
    rows = [row_line(table.columns, placed, row) for row in table.rows]
    return [plain(heading(table.columns, placed)), *map(plain, rows)]


# Rows and cells


def test_columns_drop_in_order_and_names_stay_whole() -> None:
    log = fleets.busy()
    shown = {width: rows_of(log, width=width)[0].split() for width in (170, 117, 77, 50)}
    assert {"spent", "gain", "by"} <= set(shown[170])
    assert "gain" not in shown[117]
    assert "spent" in shown[77]
    assert shown[50] == ["task", "best", "#1", "#2", "#3", "#4"]
    assert all(len(row) <= 50 for row in rows_of(log, width=50))


@pytest.mark.parametrize(("width", "cell"), [(157, "REVIEW p"), (77, "?1Cp")])
def test_pause_of_an_instance_that_waits_for_review_has_a_mark(width: int, cell: str) -> None:
    log = fleets.opened(tasks=("softmax",), instances=4)
    for number in (1, 2, 3, 4):
        fleets.judge(log, f"softmax#{number}/1", fleets.measured(1.2))
    log.add(ev.WaitingForPerson(attempt="softmax#2/1"))
    log.add(ev.Paused(instance="softmax#2", by="ada"))
    assert cell in rows_of(log, width=width)[1]


def test_more_instances_than_fit_show_the_most_interesting_and_a_count() -> None:
    log = fleets.opened(tasks=("softmax",), instances=30)
    fleets.judge(log, "softmax#27/1", fleets.measured(1.2))
    log.add(ev.WaitingForPerson(attempt="softmax#27/1"))
    _, row = rows_of(log, width=77)
    assert "#27 ?1C" in row
    assert row.split()[-1] == "+25", "five are shown"


def test_orders_of_the_rows() -> None:
    tasks = tasks_of(fold(fleets.busy().events))

    def order(name: str) -> list[str]:
        return [task.task.rpartition("/")[2] for task in fleet_view.in_order(tasks, name)]

    assert order("task") == list(fleets.TASKS)
    assert order("attention")[:2] == ["softmax", "layer_norm"]
    assert order("best")[:2] == ["softmax", "rms_norm"]
    assert order("spent")[0] == "softmax"


@pytest.mark.parametrize("reason", [*EndReason, "of a newer writer"])
def test_ended_instance_says_done_or_failed(reason: str) -> None:
    log = fleets.opened(tasks=("softmax",), instances=1)
    log.add(ev.InstanceFinished(task="starter/softmax", instance=1, reason=reason))
    word = rows_of(log)[1].split()[2]
    assert word == ("failed" if reason in ("model_failed", "infra_error") else "done")


def test_changed_cell_has_a_mark_for_five_seconds() -> None:
    log = fleets.opened(tasks=("softmax",), instances=2)
    fleets.judge(log, "softmax#1/1", fleets.measured(1.2))
    cache, model = FactsCache(), FleetModel()
    model.update(fold(log.events), cache, 0.0, now_wall=log.wall, jumped=True)
    fleets.judge(log, "softmax#1/2", fleets.measured(1.5))
    cache.forget(("softmax#1",))
    assert model.update(fold(log.events), cache, 10.0, now_wall=log.wall, jumped=False)
    assert "1.50x  ▴" in rows_of(log, changes=model.marks(14.0))[1]
    assert model.marks(15.1) == {}


def test_what_a_cockpit_reads_at_its_opening_has_no_marks() -> None:
    log = fleets.opened(tasks=("softmax",), instances=2)
    fleets.judge(log, "softmax#1/1", fleets.measured(1.2))
    cache, model = FactsCache(), FleetModel()
    model.update(fold(log.events), cache, 0.0, now_wall=log.wall, jumped=True)
    fleets.judge(log, "softmax#1/2", fleets.measured(1.5))
    cache.forget(("softmax#1",))
    minute_later = log.wall + 60.0
    assert model.update(fold(log.events), cache, 0.1, now_wall=minute_later, jumped=False)
    assert model.marks(0.2) == {}


@pytest.mark.parametrize(("width", "words"), [(157, ["stopped", "undecided"]), (44, ["s1C", "s1C"])])
def test_cells_of_a_killed_engine_say_stopped(width: int, words: list[str]) -> None:
    log = fleets.opened(tasks=("softmax",), instances=2)
    for number in (1, 2):
        fleets.judge(log, f"softmax#{number}/1", fleets.measured(1.2))
    fleets.stage(log, "softmax#1/1", "performance", "0")
    log.add(ev.WaitingForPerson(attempt="softmax#2/1"))
    row = rows_of(log, width=width, is_abandoned=True)[1]
    assert [word for word in row.split() if word in words] == words
    assert not {"timing", "REVIEW", "t1C", "?1C"} & set(row.split())


@pytest.mark.parametrize(("width", "cell"), [(157, "pausing"), (77, "g2Cp")])
def test_instance_that_is_paused_at_work_says_so(width: int, cell: str) -> None:
    log = fleets.opened(tasks=("softmax",), instances=4)
    for number in (1, 2, 3, 4):
        fleets.judge(log, f"softmax#{number}/1", fleets.measured(1.2))
    fleets.begin(log, "softmax#2/2")
    log.add(ev.Paused(instance="softmax#2", by="ada"))
    assert cell in rows_of(log, width=width)[1]


@pytest.mark.parametrize("width", [157, 77, 50])
def test_cells_of_instances_never_touch(width: int) -> None:
    log = fleets.opened(tasks=("softmax",), instances=4)
    for number in (1, 2, 3, 4):
        fleets.judge(log, f"softmax#{number}/12", fleets.measured(1.2))
    changes = {f"softmax#{number}": "▴" for number in (1, 2, 3)}
    row = rows_of(log, width=width, changes=changes)[1]
    assert row.count("▴ ") == 3


# GPUs


def gpu_lines(log: EventLog) -> list[str]:
    state = fold(log.events)
    return [plain(line) for line in device_view.gpu_table(state, now_wall=log.wall + 40.0, width=77)]


def test_gpus_say_what_they_do_and_what_is_wrong() -> None:
    titles, *gpus = gpu_lines(fleets.busy())
    assert titles.split()[:4] == ["#", "state", "attempt", "busy"]
    assert gpus[0].split()[:4] == ["0", "timing", "softmax#2/2", "90"]
    assert gpus[1].split()[:3] == ["1", "judge", "layer_norm#3/1"]
    assert gpus[2].split()[:3] == ["2", "idle", "-"]
    assert gpus[5:] == [
        "5  lent to others",
        "6  kim: pid 4242, 12G used",
        "7  lost 0:40 ago: the probe hung; 2 attempts queued again",
    ]


def test_value_that_a_machine_does_not_show_is_no_zero() -> None:
    log = fleets.opened(gpus=1)
    log.add(ev.DeviceSampled(device="0", description="MI300X", busy_with=("softmax#1/1",)))
    titles, row = gpu_lines(log)
    assert "power" not in titles
    assert row.split() == ["0", "judge", "softmax#1/1"]


def test_strip_of_a_cluster_names_each_node_once() -> None:
    log = fleets.opened(gpus=0)
    for number in range(64):
        log.device(f"node{number // 8 + 1}/{number % 8}", "softmax#1/1", share=1.0)
    lines = device_view.gpu_strip(fold(log.events), now_wall=log.wall, width=77)
    assert len(lines) <= 6
    assert plain(lines[0]).startswith("node1/0j   1j   2j   3j   4j   5j   6j   7j   node2/0j   1j")


# The screen


async def test_keys_move_over_cells_jump_to_what_waits_is_best_or_failed_and_open_instances() -> None:
    async with fleet(fleets.busy()) as (pilot, screen, _):
        assert screen.tasks.cell_key == "softmax#1"
        seen = []
        for key in ("w", "b", "B", "x", "x", "X"):
            await pilot.press(key)
            seen.append(screen.tasks.cell_key)
        assert seen == ["softmax#3", "rms_norm#1", "softmax#3", "softmax#4", "layer_norm#1", "softmax#4"]
        await pilot.press("3", "enter")
        agent = screen.app.screen
        assert isinstance(agent, AgentScreen)
        assert agent.attempt.attempt == "softmax#3/2", "Next leads to the attempt that waits"
        await pilot.press("escape", "1", "h", "h", "h")
        assert screen.tasks.cell_key == "softmax#1"
        await pilot.press("l", "l", "j")
        assert screen.tasks.cell_key == "layer_norm#3"
        await pilot.press("h", "enter")
        assert isinstance(screen.app.screen, AgentScreen)
        assert screen.app.screen.key == "layer_norm#2"
        await pilot.press("escape", "escape")
        assert isinstance(screen.app.screen, HomeScreen)


async def test_waiting_key_on_the_only_row_that_waits_opens_review() -> None:
    log = fleets.opened(tasks=("softmax", "rope"), instances=1)
    for task in ("softmax", "rope"):
        fleets.judge(log, f"{task}#1/1", fleets.measured(1.5))
    log.add(ev.WaitingForPerson(attempt="rope#1/1"), after_s=1.0)
    async with fleet(log) as (pilot, screen, _):
        await pilot.press("w")
        assert screen.tasks.cell_key == "rope#1"
        await pilot.press("j", "k", "w", "w")
        await until(pilot, lambda: isinstance(screen.app.screen, ReviewScreen), "review")
        await until(pilot, lambda: screen.app.screen.entry is not None, "its queue")
        assert screen.app.screen.entry.key == "rope#1/1"


async def test_failure_before_a_right_attempt_is_found_and_decisions_are_beside_the_verdicts() -> None:
    log = fleets.opened(tasks=("softmax", "rope"), instances=1)
    for attempt in ("softmax#1/1", "rope#1/2"):
        fleets.judge(log, attempt, fleets.measured(1.5))
        if attempt == "softmax#1/1":
            fleets.judge(log, "rope#1/1", wrong())
    log.add(ev.DecisionMade(attempt="softmax#1/1", accepted=False, by="kim", why="reads stale data"))
    async with fleet(log) as (pilot, screen, _):
        shown = [" ".join(line.split()) for line in screen.latest.text.split("\n")]
        assert "softmax#1/1 rejected by kim: reads stale data" in shown
        await pilot.press("g", "x")
        assert screen.tasks.cell_key == "rope#1"
        assert [toast.message for toast in screen.app._notifications] == [
            "rope#1/1 failed, a later attempt did not"
        ]


def test_best_without_times_says_where_its_traffic_came_from() -> None:
    log = fleets.opened(tasks=("softmax",), instances=1)
    fleets.judge(log, "softmax#1/1", correct(waste=2.0))
    assert "traffic 2.50x " in rows_of(log)[1]
    fleets.judge(log, "softmax#1/2", correct())
    assert "traffic 2.50x -> 1.50x" in rows_of(log)[1]
    assert "traffic 1.50x" in rows_of(log, width=50)[1]


async def test_order_and_filter_keep_the_cursor() -> None:
    async with fleet(fleets.busy(), WIDE) as (pilot, screen, _):
        await pilot.press("j", "j", "o")
        assert screen.tasks.cell_key == "rms_norm#1"
        assert "order: task" in screen.tasks_title.text
        await pilot.press("slash", *"rms")
        assert [row.key for row in screen.tasks.rows] == ["starter/rms_norm"]
        await until(pilot, lambda: "filter: 1 of 5" in screen.tasks_title.text, "the title")
        assert screen.tasks.cell_key == "rms_norm#1"


async def test_ended_engine_takes_the_gpus_away_and_says_why() -> None:
    async with fleet(fleets.busy()) as (pilot, screen, source):
        source.pending = [ev.EngineStopped(reason="stopped by ada", seq=900)]
        await until(pilot, lambda: not screen.gpus_side.display, "no GPUs")
        assert "ENGINE ENDED" in screen.header_bar.text
        assert "stopped by ada" in screen.header_bar.text


async def test_verdicts_stand_on_the_clock_of_the_header() -> None:
    """The clock counts the work of engines, so it rests after the end; a resume days later does not move it."""
    log = EventLog()
    log.open()
    log.attempt("softmax#1/1", story.KERNEL, story.evaluation(Verdict.CORRECT))
    judged = fold(log.events).worked_s
    log.add(ev.EngineStopped(reason="interrupted"))
    half_an_hour_later = log.events[-1].wall + 1800
    async with on_fleet(log.events, wall=lambda: half_an_hour_later) as (pilot, app):
        await until(pilot, lambda: f"at {clock(judged)}  correct" in picture(app), "the verdict's place")


async def test_fleet_draws_at_any_terminal_size() -> None:
    async with on_fleet(finished(), size=(10, 3)) as (pilot, _):
        for size in ((40, 10), (20, 5), (10, 3), (300, 90)):
            await pilot.resize_terminal(*size)
            await pilot.press("1", "l", "j", "2", "3", "o", "l", "escape", "question_mark", "escape")
            await pilot.resize_terminal(80, 24)


async def test_session_without_instances_says_so() -> None:
    async with on_fleet([], size=NARROW) as (_, app):
        assert "No instance has started yet." in picture(app)
        assert "Nothing needs you." in picture(app)


async def test_task_whose_instances_have_not_started_opens_no_empty_screen() -> None:
    async with on_fleet([story.started()]) as (pilot, app):
        await until(pilot, lambda: "softmax" in app.screen.tasks.text, "the row")
        await pilot.press("enter")
        await until(pilot, lambda: bool(app._notifications), "the reason")
        assert [note.message for note in app._notifications] == ["no instance of this task has started"]
        assert isinstance(app.screen, FleetScreen)


async def test_short_table_leaves_room_for_the_instance_under_the_cursor() -> None:
    app, _ = live(running())
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen) and app.screen.latest.display, "lines")
        assert app.screen.latest.text.startswith(" softmax#1 ─ ")
        await pilot.press("l")
        lines = app.screen.latest.text.split("\n")
        assert lines[0].startswith(" softmax#2 ─ reflect")
        assert lines[1].startswith("    #2/2  ")
        assert any("tl.maximum is element-wise; tl.max reduces." in line for line in lines[1:5])
        assert any(line.startswith("    #2/1  CALL ERROR") for line in lines), "its newest verdict"
        verdicts = next(place for place, line in enumerate(lines) if line.startswith(" Verdicts ─ newest"))
        assert [row.split()[0] for row in lines[verdicts + 1 : verdicts + 3]] == [
            "softmax#1/2",
            "softmax#1/3",
        ], "the newest is a decision"
        assert lines[-1] == " Letters  g generate  r reflect  q queued  C correct  X call error "
