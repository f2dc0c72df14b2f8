"""Home screen: what ran, what runs, what waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.widgets import Input

from engine.errors import UsageProblem
from engine.plan.request import RunPlan
from engine.plan.settings import RECORDED
from sessions import Home
from sessions.catalog import SessionInfo, Standing
from sessions.events import Notice
from sessions.state.speed import Speed
from tests.support.cockpit.cockpits import NARROW, NODE, USUAL, WIDE, at_home, listed, on_home, until
from tests.support.cockpit.pictures import picture
from tests.support.sessions.journals import SESSION, running, write_live
from tui.cockpit.app import Cockpit
from tui.cockpit.dialogs.dialogs import ConfirmDialog, TextDialog
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.screens.home.session_table import SessionTable
from tui.cockpit.screens.new_run.new_run import NewRunScreen
from tui.cockpit.widgets.line_view import LineView
from tui.facts.node_facts import Gpu, NodeFacts, gpu_words


def session(name: str, state: Standing = Standing.FINISHED, **fields: object) -> SessionInfo:
    """Return a session on one GPU with three attempts."""
    usual = {"method": "geak", "model": "recorded:starter", "tasks": ("starter/softmax",), "devices": ("0",)}
    results = {"attempts": 3, "started": 1_795_183_380.0}
    return listed(name, state, **usual | results | fields)


TASKS = tuple(f"tritonbench/kernel_{number}" for number in range(184))
INFOS = [
    session(
        SESSION,
        Standing.RUNNING,
        title="paged-attn tuning",
        model="anthropic:claude-x",
        tasks=("starter/softmax", "starter/rms_norm"),
        attempts=384,
        solved=("starter/softmax",),
        speeds={"starter/softmax": Speed(1.84, 1.79, 1.88, "", 6, 6)},
        cost_usd=14.2,
        budget_usd=50.0,
        worked_s=6127.0,
        waiting=("softmax#1/4", "rope#2/3"),
    ),
    session(
        "20261120-120000-geak-0002",
        Standing.RUNNING,
        title="nightly tritonbench",
        model="openai:qwen3@http://localhost:8000",
        tasks=TASKS,
        attempts=1902,
        solved=TASKS[:71],
        speeds={TASKS[3]: Speed(37.0, 36.0, 38.0, ">=", 5, 6)},
        worked_s=22_244.0,
        waiting=(),
    ),
    session(
        "20261119-100000-tune-0003",
        method="tune",
        model="",
        solved=("starter/softmax",),
        confirmed=("starter/softmax",),
        speeds={"starter/softmax": Speed(1.02, 0.99, 1.05, "", 6, 6)},
        accepted=("softmax#1/2",),
        worked_s=552.0,
    ),
    session(
        "20261119-090000-geak-0004",
        tasks=("starter/softmax", "starter/rms_norm", "starter/rope"),
        solved=("starter/softmax", "starter/rms_norm", "starter/rope"),
        confirmed=("starter/softmax", "starter/rms_norm"),
        devices=("cpu",),
        worked_s=139.0,
    ),
    session("20261118-090000-geak-0005", Standing.STOPPED, cost_usd=0.31),
    session("20261117-090000-geak-0006", Standing.CRASHED, attempts=0),
]


def names(app: Cockpit) -> list[str]:
    """Return the sessions on screen, without section lines."""
    return [row.key for row in app.screen.query_one(SessionTable).rows if not row.key.startswith("#")]


@pytest.mark.parametrize("size", [NARROW, (120, 40), WIDE], ids=["80x24", "120x40", "160x48"])
async def test_picture_of_home(size: tuple[int, int], snapshot: SnapshotAssertion) -> None:
    async with on_home(lambda: INFOS, size=size) as (_, app):
        assert picture(app) == snapshot


async def test_empty_home_shows_what_is_here(snapshot: SnapshotAssertion) -> None:
    async with on_home(list, node=NodeFacts(version="0.1.0", triton="3.7.1"), size=NARROW) as (_, app):
        assert picture(app) == snapshot


async def test_filter_narrows_as_one_types_and_the_cursor_skips_section_lines() -> None:
    async with on_home(lambda: INFOS) as (pilot, app):
        table = app.screen.query_one(SessionTable)
        await pilot.press("slash")
        await until(pilot, lambda: bool(app.screen.query(Input)), "the line")
        prompt = app.screen
        prompt.query_one(Input).value = "state:crashed"
        await pilot.pause()
        assert [row.key for row in table.rows] == ["# Not finished", INFOS[5].name]
        assert "1 of 6 sessions" in str(prompt.query_one("#about").render())
        prompt.query_one(Input).value = "stat:crashed"
        await pilot.pause()
        assert "nearest: state" in str(prompt.query_one("#about").render())
        prompt.query_one(Input).value = "speedup>1.2"
        await pilot.press("enter")
        await pilot.pause()
        assert names(app) == [INFOS[0].name, INFOS[1].name]
        await pilot.press("escape")
        assert len(names(app)) == len(INFOS)
        await pilot.press("g")
        assert table.cursor_key == INFOS[0].name
        await pilot.press("j", "j")
        assert table.cursor_key == INFOS[4].name, (
            "sessions that are not finished come before the finished ones"
        )
        await pilot.press("j", "j")
        assert table.cursor_key == INFOS[2].name


def preview(app: Cockpit) -> str:
    return app.screen.query_one("#preview", LineView).text


async def test_preview_has_winners_and_what_goes_on_with_the_session() -> None:
    async with on_home(lambda: INFOS, size=USUAL) as (pilot, app):
        assert "softmax   1.84x [1.79, 1.88]" in preview(app)
        assert "rms_norm  not solved" in preview(app)
        assert preview(app).startswith(f"paged-attn tuning\n{SESSION}\nrunning")
        await pilot.press("j")
        assert "and 1" in preview(app), "184 tasks do not fit"
        await pilot.resize_terminal(*NARROW)
        await pilot.press("j", "j")
        assert preview(app).startswith(f"{INFOS[5].name}\ncrashed")


async def test_preview_has_size_and_last_error_of_the_journal(home: Home) -> None:
    write_live(home, running())
    app = Cockpit(home)
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: "on the disk" in picture(app), "the size")
        assert "Last error: softmax#2/1 call error" in preview(app)
        assert "softmax     2.60 -> 1.70x  #1/3" in preview(app), "the traffic of a session without a GPU"


async def test_an_error_long_before_the_end_is_shown_and_its_cut_too(home: Home) -> None:
    later = [Notice(level="info", message="x" * 2000)] * 600
    write_live(home, [*running(), Notice(level="error", message="disk full " * 90), *later])
    app = Cockpit(home)
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: "Last error" in picture(app), "the error")
        assert "…" in preview(app)


async def test_r_resumes_a_session_that_is_not_finished_after_a_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resumed: list[str] = []
    opened: list[str] = []
    monkeypatch.setattr(Cockpit, "open_session", lambda _, session: opened.append(session))
    async with on_home(lambda: INFOS, resume=resumed.append) as (pilot, app):
        await pilot.press("r")
        assert isinstance(app.screen, HomeScreen), "it runs"
        app.screen.table.select(INFOS[4].name)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
        assert "$0.31" in picture(app)
        await pilot.press("enter")
        await until(pilot, lambda: opened == [INFOS[4].name], "the session")
        assert resumed == [INFOS[4].name]


async def test_d_starts_the_demo_and_f_asks_for_the_file_of_a_kernel() -> None:
    plans: list[RunPlan] = []

    def refuse(plan: RunPlan) -> str:
        plans.append(plan)
        raise UsageProblem("the disk is full")

    async with on_home(list, start=refuse) as (pilot, app):
        await pilot.press("d")
        await until(pilot, lambda: bool(app._notifications), "why it did not start")
        assert [note.message for note in app._notifications] == ["not started: the disk is full"]
        assert [plan.model for plan in plans] == [RECORDED]
        await pilot.press("f", *"rms.py")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen), "the form")
        assert app.screen.values == {"file": "rms.py"}


async def test_list_is_read_again_only_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.cockpit.screens.home.home.LOOK_S", 0.01)
    marks, reads, looks = [1], [], []

    def read() -> list[SessionInfo]:
        reads.append(marks[0])
        return INFOS[: marks[0]]

    def look() -> int:
        looks.append(marks[0])
        return marks[0]

    async with on_home(read, mark=look) as (pilot, app):
        looked = len(looks)
        await until(pilot, lambda: len(looks) > looked + 2, "further looks")
        assert reads == [1]
        marks[0] = 2
        await until(pilot, lambda: len(names(app)) == 2, "the new session")
        assert reads == [1, 2]


async def test_cursor_stands_on_the_session_just_left_and_messages_go_with_its_screen(home: Home) -> None:
    older = "20261101-100000-geak-0001"
    write_live(home, running())
    write_live(home, running(), session=older)
    app = Cockpit(home)
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: len(app.screen.table.infos) == 2, "the list")
        assert app.screen.table.cursor_key == SESSION, "the newest is first"
        app.open_session(older)
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the older session")
        app.notify("about this screen")
        await until(pilot, lambda: bool(app._notifications), "the message")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "Home")
        assert not app._notifications
        assert app.screen.table.cursor_key == older


async def test_empty_home_opens_the_example_with_its_measured_times(home: Home) -> None:
    app = Cockpit(home)
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: "a run on an H200" in picture(app), "what is here")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await until(pilot, lambda: app.feed is not None and app.feed.replay.playing, "it plays")
        await pilot.press("dollar_sign")
        await until(pilot, lambda: "5.35x" in picture(app), "a measured speedup")


async def test_unreadable_list_is_shown_with_a_crash_file(tmp_path: Path) -> None:
    def broken() -> list[SessionInfo]:
        raise ZeroDivisionError("a bug of ours")

    app = at_home(broken, home=Home(tmp_path))
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TextDialog), "the dialog")
        await pilot.pause()
        text = app.screen.query_one("LineView").text
        assert "ZeroDivisionError" in text
        (file,) = (tmp_path / "crashes").iterdir()
        assert file.name in text.replace("\n", "")
        assert "Traceback" in file.read_text()
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


def test_gpus_in_use_are_counted() -> None:
    busy = (Gpu("0", "MI300X", "kim: python"), *NODE.gpus[1:])
    assert gpu_words(NodeFacts(gpus=busy)) == "8x MI300X, 1 in use"
    assert gpu_words(NodeFacts()) == "no GPU"
