"""Form of a new run: its checks, its estimates, and the start."""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot
from textual.widgets import Input

from engine.errors import EngineDidNotStart
from engine.plan.request import RunPlan
from sessions import Home
from sessions.catalog import SessionInfo, Standing
from tests.support.cockpit.cockpits import NARROW, NODE, USUAL, WIDE, at_home, listed, until
from tests.support.cockpit.pictures import picture, screen_text
from tests.tui.commands.run.test_own_kernels import KERNEL, REFERENCE, RETURNS
from tui.actions.run_estimates import EstimatedRange, estimate
from tui.actions.run_form import check, command_line
from tui.cli import main
from tui.cockpit.app import Cockpit
from tui.cockpit.dialogs.choosing import ChoiceDialog
from tui.cockpit.dialogs.dialogs import ConfirmDialog
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.screens.new_run import new_run
from tui.cockpit.screens.new_run.new_run import NewRunScreen
from tui.cockpit.viewer import ExitNote
from tui.facts.node_facts import NodeFacts

MODEL = "anthropic:claude-opus-5"


def past(name: str, *, attempts: int = 10, **fields: object) -> SessionInfo:
    """Return a finished session on softmax."""
    usual = {"method": "geak", "model": MODEL, "tasks": ("starter/softmax",)}
    return listed(name, Standing.FINISHED, **usual | {"attempts": attempts} | fields)


PAST = [
    past("a", calls=20, input_tokens=100_000, output_tokens=20_000, cost_usd=1.0, worked_s=100.0),
    past("b", calls=30, input_tokens=200_000, output_tokens=30_000, cost_usd=2.0, worked_s=200.0),
    past("c", calls=10, input_tokens=300_000, output_tokens=40_000, cost_usd=4.0, worked_s=400.0),
]


def checked(home: Home, **values: str):  # a test's own helper
    """Return the check of these values on a machine without a GPU and with one key."""
    environ = {**os.environ, "ANTHROPIC_API_KEY": "sk-test"}
    return check(
        {key.replace("_", "-"): value for key, value in values.items()},
        home=home,
        environ=environ,
        folder=Path("/"),
    )


def test_estimates_are_median_and_range_of_past_sessions(home: Home) -> None:
    plan = checked(home, tasks="softmax", model=MODEL, instances="2", iterations="5", devices="cpu").plan
    figures = estimate(plan, PAST)
    assert (figures.attempts, figures.sessions) == (10, 3)
    assert figures.cost_usd == EstimatedRange(2.0, 1.0, 4.0)
    assert figures.calls == EstimatedRange(20.0, 10.0, 30.0)
    assert figures.wall_s == EstimatedRange(200.0, 100.0, 400.0)


def test_nothing_is_invented_without_a_past_session(home: Home) -> None:
    plan = checked(home, tasks="softmax,vector_add", model=MODEL, devices="cpu").plan
    figures = estimate(plan, PAST)
    assert figures.unknown == ("vector_add",)
    assert (figures.calls, figures.cost_usd, figures.wall_s) == (None, None, None)
    unlike = [past("d", model="openai:m", cost_usd=1.0), past("e", method="direct", cost_usd=1.0)]
    assert estimate(plan, unlike).unknown == ("softmax", "vector_add")
    unpriced = [past("f", tasks=plan.tasks, cost_usd=1.0, unpriced_calls=3, calls=3)]
    assert estimate(plan, unpriced).cost_usd is None, "a part of the cost is no cost"


def test_an_agent_takes_the_place_of_a_method(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not on the path" in checked(home, tasks="softmax", agent="codex").errors["agent"]
    (tmp_path / "codex").touch(mode=0o755)
    run = checked(home, tasks="softmax", agent="codex", model="gpt-5.5", devices="cpu", method="reflexion")
    assert run.plan is not None
    assert (run.plan.method, run.plan.model, run.plan.instances) == ("agent", "codex gpt-5.5", 1)


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"instances": "four"}, "instances", "a whole number"),
        ({"budget_usd": "-1"}, "budget-usd", "above 0"),
        ({"tasks": "softmacks"}, "tasks", "softmax"),
        ({"model": "openai:some"}, "model", "OPENAI_API_KEY"),
        ({"model": "antropic:some"}, "model", "did you mean anthropic"),
        ({"devices": "7"}, "devices", "no device '7'"),
        ({"model": "anthropic:unpriced", "budget_usd": "5"}, "budget-usd", "needs a price"),
    ],
)
def test_errors_stand_at_their_field(home: Home, values: dict[str, str], field: str, words: str) -> None:
    errors = checked(home, **values).errors
    assert list(errors) == [field]
    assert words in errors[field]


def test_copied_line_starts_the_same_run(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    values = {
        "tasks": "softmax", "model": f"reflector=anthropic:claude-haiku-4-5,{MODEL}", "instances": "3",
        "budget-usd": "5", "title": "two words",
    }  # fmt: skip
    plans: list[RunPlan] = []

    def refuse(run: RunPlan, home: Home) -> str:
        plans.append(run)
        raise EngineDidNotStart("a test starts nothing")

    monkeypatch.setattr("tui.commands.run.run.prepare", refuse)
    main(shlex.split(command_line(values))[1:])
    assert plans == [check(values, home=home, environ=os.environ, folder=Path.cwd()).run]


def form(home: Home, *, node: NodeFacts = NODE, started: list[RunPlan] | None = None) -> Cockpit:
    """Return a cockpit at Home; its starts are only recorded."""
    app = at_home(lambda: PAST, home=home, node=node)

    def start(run: RunPlan) -> str:
        if started is None:
            raise EngineDidNotStart("--devices 3: another engine has it")
        started.append(run)
        return "20261120-140300-geak-5f0a"

    app._doors.start = start
    return app


async def opened(app: Cockpit, pilot: Pilot[ExitNote]) -> NewRunScreen:
    """Open the form, and wait until its defaults are checked."""
    await until(pilot, lambda: isinstance(app.screen, HomeScreen), "Home")
    await pilot.press("c")
    await until(pilot, lambda: isinstance(app.screen, NewRunScreen), "the form")
    screen = app.screen
    await settled(screen, pilot)
    return screen


@asynccontextmanager
async def on_form(
    home: Home, *, size: tuple[int, int] = USUAL, **options: Any
) -> AsyncIterator[tuple[Pilot[ExitNote], Cockpit, NewRunScreen]]:
    """Open the form; `options` are those of `form`."""
    app = form(home, **options)
    async with app.run_test(size=size) as pilot:
        yield pilot, app, await opened(app, pilot)


async def settled(screen: NewRunScreen, pilot: Pilot[ExitNote]) -> None:
    """Wait until the values are checked, the model was asked and past sessions are read."""

    def done() -> bool:
        outlook = screen.outlook
        answered = outlook.checked is not None and (
            outlook.checked.plan is None or outlook.reached is not None
        )
        return answered and outlook.node is not None and bool(screen._past)

    await until(pilot, done, "the check")


CPU_NODE = NodeFacts(host="laptop", version="0.1.0", triton="3.7.1", keys=("anthropic",))


@pytest.mark.parametrize("size", [NARROW, (120, 40), WIDE], ids=["80x24", "120x40", "160x48"])
async def test_picture_of_the_form(
    home: Home, size: tuple[int, int], snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    app = form(home, node=CPU_NODE)
    app._doors.unreachable = lambda *_: "api.anthropic.com:443 did not answer in 3 s"
    async with app.run_test(size=size) as pilot:
        screen = await opened(app, pilot)
        for key, text in {"tasks": "softmax", "model": MODEL, "budget-usd": "20", "devices": "cpu"}.items():
            screen._set(key, text)
        await settled(screen, pilot)
        await until(pilot, lambda: "claude" in str(screen.outlook.reached), "the model")
        if size == NARROW:
            screen._set("instances", "none")
            await settled(screen, pilot)
        assert picture(app) == snapshot


async def test_picture_of_what_a_run_will_do(home: Home, snapshot: SnapshotAssertion) -> None:
    async with on_form(home, node=CPU_NODE, size=NARROW) as (pilot, app, _):
        await pilot.press("2")
        await pilot.pause()
        assert picture(app) == snapshot


async def test_default_run_starts_without_a_key_and_opens_its_session(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[RunPlan] = []
    opened_sessions: list[str] = []
    monkeypatch.setattr(Cockpit, "open_session", lambda _, session: opened_sessions.append(session))
    async with on_form(home, started=started) as (pilot, app, _):
        await pilot.press("ctrl+r")
        await until(pilot, lambda: bool(opened_sessions), "the session")
        assert isinstance(app.screen, HomeScreen), "the form is gone"
        assert [run.model for run in started] == ["recorded:starter"]


async def test_typing_checks_escape_restores_marks_choose_tasks_and_leaving_asks_after_a_change(
    home: Home,
) -> None:
    async with on_form(home) as (pilot, app, screen):
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen), "nothing was changed"
        screen = await opened(app, pilot)
        screen.table.select("instances")
        await pilot.press("enter", "0")
        await until(
            pilot,
            lambda: bool(screen.outlook.checked and "instances" in screen.outlook.checked.errors),
            "the error",
        )
        assert "a whole number from 1 to 1,000,000" in screen.query_one("#about").text
        await pilot.press("ctrl+r")
        assert screen is app.screen
        await pilot.press("escape")
        assert screen.values == {}
        await pilot.press("enter", "2", "tab")
        assert screen.values == {"instances": "2"}
        assert screen.table.cursor_key == "iterations"
        assert not screen.query_one(Input).has_focus
        assert screen.table.copy_text == "wavedeck run --instances 2"
        screen.table.select("tasks")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog), "the choices")
        first, second = (row.key for row in app.screen.table.rows[:2])
        await pilot.press("space", "space", "enter")
        await pilot.pause()
        assert screen.values == {"instances": "2", "tasks": f"{first},{second}"}
        await pilot.press("escape")
        assert isinstance(app.screen, ConfirmDialog)


async def test_start_without_triton_asks_first(home: Home) -> None:
    started: list[RunPlan] = []
    app = form(home, started=started, node=NodeFacts(version="0.1.0"))
    async with app.run_test(size=NARROW) as pilot:
        await opened(app, pilot)
        await until(pilot, lambda: "nothing can be judged" in screen_text(app), "what is missing")
        await pilot.press("ctrl+r")
        assert isinstance(app.screen, ConfirmDialog)
        await pilot.press("escape")
        assert started == []


async def test_refused_start_stands_at_its_field(home: Home) -> None:
    async with on_form(home) as (pilot, _, screen):
        await pilot.press("ctrl+r")
        await until(pilot, lambda: bool(screen.outlook.checked and screen.outlook.checked.errors), "refusal")
        assert list(screen.outlook.checked.errors) == ["devices"]


async def test_each_choice_of_review_and_method_says_what_it_means(home: Home) -> None:
    async with on_form(home, size=NARROW) as (pilot, app, screen):
        for field, chosen in (("review", "auto: the run goes on"), ("method", "geak: write, judge, reflect")):
            screen.table.select(field)
            await until(pilot, lambda: chosen in screen.query_one("#about").text, field)  # noqa: B023
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, ChoiceDialog), "the choices")
            for row in app.screen.table.rows:
                assert len(row.cells[1].text) > 20
                assert row.cells[1].text in picture(app), "whole at 80 columns"
            await pilot.press("escape")


async def test_messages_vanish_when_their_cause_is_corrected(home: Home) -> None:
    async with on_form(home) as (pilot, app, screen):
        screen.table.select("instances")
        await pilot.press("enter", "0", "enter")
        await until(pilot, lambda: "instances" in errors_of(screen), "the error")
        await pilot.press("ctrl+r")
        assert [note.message for note in app._notifications] == ["not started: the values in red are wrong"]
        await pilot.press("enter", "backspace", "2", "enter")
        assert not app._notifications
        await until(pilot, lambda: not errors_of(screen), "no error")


async def test_a_model_that_did_not_answer_is_asked_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_run, "ASK_S", 0.01)
    answers = iter(["no connection", "no connection", ""])
    async with on_form(home) as (pilot, _, screen):
        screen._doors.unreachable = lambda *_: next(answers, "")
        screen._set("model", "openai:qwen3@http://localhost:1")
        await until(pilot, lambda: "no connection" in str(screen.outlook.reached), "the reason")
        await until(pilot, lambda: list(screen.outlook.reached.values()) == [""], "the answer")


@pytest.mark.judge
@pytest.mark.soak
async def test_a_kernel_file_becomes_a_task_of_the_form(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "scale.py"
    file.write_text(KERNEL + RETURNS + REFERENCE)
    async with on_form(home) as (pilot, app, screen):
        screen.table.select("file")
        await pilot.press("enter")
        screen.query_one(Input).value = f"{file} --shapes 'x=8x64:fp16'"
        await pilot.press("enter")
        await until(
            pilot,
            lambda: "file" in errors_of(screen) and "no input" in errors_of(screen)["file"],
            "the error",
        )

        await pilot.press("enter")
        screen.query_one(Input).value = f"{file} --shapes 'x=8x64:fp16, weight=64:fp16'"
        await pilot.press("enter")
        await until(pilot, lambda: "reading the kernel file" in screen_text(app), "what goes on")
        assert "Missing" not in screen_text(app), "nothing is known yet"
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the page")
        assert "scale_rows_ref in scale.py" in screen_text(app)
        await pilot.press("enter")
        assert isinstance(app.screen, ConfirmDialog), "this key was for the form"
        await pilot.press("y")
        await until(pilot, lambda: "tasks" in screen.values, "the task")
        (folder,) = (home.root / "own").iterdir()
        assert screen.values["file"].startswith(str(file)), "the field shows where the task is from"
        assert screen.table.source == f"wavedeck run own/{folder.name} --method tune"
        await until(
            pilot, lambda: screen.outlook.checked and screen.outlook.checked.plan, "a run that can start"
        )
        assert "no model is asked" in screen_text(app)
        screen._set("model", "openai:qwen3@http://localhost:1")
        assert "method" not in screen.values, "a real model writes new kernels"
        screen._set("suite", "starter")
        assert not {"tasks", "file"} & screen.values.keys()


def errors_of(screen: NewRunScreen) -> Mapping[str, str]:
    """Return the error texts by field."""
    return screen.outlook.checked.errors if screen.outlook.checked is not None else {}
