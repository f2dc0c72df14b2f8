"""Ablations: the sessions of each row, the chains of a recording per row, and how to find an interrupted ablation."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from engine.corpus.retrieval import build_corpus
from engine.methods.geak import Geak
from engine.plan.ablation import CONTRIBUTIONS, ROWS, Ablation, AblationRow, row_sessions, settle
from engine.plan.job import plan_of, read_plan, session_started
from engine.plan.plan import RunPlan, SessionPlan, resolve
from engine.process.launch import write_plan
from engine.prompting.prompting import Setting, knowledge_for
from harness import Verdict
from sessions import Home, Recorder
from sessions.events import EngineStarted, InstanceFinished, InstanceStarted, Role, SessionFinished
from sessions.settings import MethodOptions
from suites import load_suite
from tests.engine.test_plan import write_recording
from tests.support.scripted_context import ScriptedContext

KEY = {"ANTHROPIC_API_KEY": "key"}
MODULES = {"knowledge", "one-shot", "optimizer", "reflection"}


def settled(home: Home, *, anew: bool = False, **fields: object) -> Ablation:
    defaults = {"model": "anthropic:test", "tasks": ("vector_add",), "instances": 2, "iterations": 3}
    return settle(RunPlan(**(defaults | fields)), home=home, environ=KEY, anew=anew)  # type: ignore[arg-type]


def record(home: Home, ablation: Ablation, number: int, *, finished: bool = True) -> SessionPlan:
    """Record the session of a row and return its plan."""
    plan = resolve(ablation.row_plan(ROWS[number - 1]), home=home, environ=KEY)
    with Recorder.begin(home, session_started(plan)) as recorder:
        recorder.record(EngineStarted(host="here", pid=1))
        recorder.record(InstanceStarted(task="starter/vector_add", instance=1))
        if finished:
            recorder.record(InstanceFinished(task="starter/vector_add", instance=1, reason="iterations"))
            recorder.record(SessionFinished())
    return plan


@pytest.fixture
def home(isolated_home: Path) -> Home:
    home = Home(isolated_home)
    home.ensure()
    return home


def test_rows_add_one_module_at_a_time_and_leave_each_module_out_once() -> None:
    modules_by_row = {row.number: MODULES - set(row.without) for row in ROWS}
    assert len({frozenset(modules) for modules in modules_by_row.values()}) == len(ROWS)
    assert [len(modules_by_row[number]) for number in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert modules_by_row[1] < modules_by_row[2] < modules_by_row[3] < modules_by_row[4]
    assert {frozenset(MODULES - modules_by_row[number]) for number in (3, 5, 6, 7)} == {
        frozenset({module}) for module in MODULES
    }
    for contribution in CONTRIBUTIONS:
        with_module, without_module = modules_by_row[contribution.on], modules_by_row[contribution.off]
        assert with_module - without_module == {contribution.module}
        assert without_module < with_module


def test_rows_differ_only_in_their_modules(home: Home) -> None:
    ablation = settled(
        home, review="manual", suite="starter", method="tune", options=MethodOptions(without=("reflection",))
    )
    plans = [resolve(ablation.row_plan(row), home=home, environ=KEY) for row in ROWS]
    assert [set(plan.options.without) for plan in plans] == [set(row.without) for row in ROWS]
    assert {plan.series for plan in plans} == {ablation.name}
    assert {(plan.method, plan.review, plan.instances, plan.iterations) for plan in plans} == {
        ("geak", "auto", 2, 3)
    }
    assert len({(plan.seed, plan.tasks, plan.devices, plan.targets) for plan in plans}) == 1


def test_rows_play_consecutive_chains(home: Home) -> None:
    write_recording(home.root, vector_add=[2] * 15)
    ablation = settled(home, model="recorded:small", instances=2)
    plans = [resolve(ablation.row_plan(row), home=home, environ={}) for row in ROWS]
    assert [plan.first_chain for plan in plans] == [1, 3, 5, 7, 9, 11, 13]
    assert settled(home, model="recorded:small", instances=None).checked.instances == 2
    assert plan_of(session_started(plans[3]).describe()).first_chain == 7, (
        "a resume that reads only the events finds the same chains"
    )


def test_interrupted_ablation_is_found_by_its_settings(home: Home) -> None:
    first = settled(home)
    record(home, first, 1)
    record(home, first, 2, finished=False)
    again = settled(home)
    assert again.name == first.name
    assert again.plan.seed == first.plan.seed, "the remaining rows get the same inputs as the finished rows"
    assert {number: str(info.state) for number, info in again.sessions.items()} == {
        1: "not stored",
        2: "crashed",
    }
    assert row_sessions(home, first.name).keys() == {1, 2}


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "anthropic:other"},
        {"instances": 3},
        {"iterations": 4},
        {"tasks": ("softmax",)},
        {"targets": ("gfx90a",)},
        {"budget_tokens": 1000},
        {"seed": 1234567},
        {"against": "eager"},
    ],
)
def test_changed_settings_start_a_new_ablation(home: Home, changes: dict[str, object]) -> None:
    first = settled(home)
    record(home, first, 1)
    assert settled(home, **changes).sessions == {}


def test_ablation_with_old_prompts_is_not_continued(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    first = settled(home)
    plan = resolve(first.row_plan(ROWS[0]), home=home, environ=KEY)
    old = msgspec.structs.replace(session_started(plan), templates={"first.j2": "0" * 64})
    Recorder.begin(home, old).close()
    fresh = settled(home)
    assert (fresh.sessions, fresh.outdated) == ({}, first.name)


def test_anew_starts_a_new_ablation(home: Home) -> None:
    first = settled(home)
    record(home, first, 1)
    fresh = settled(home, anew=True)
    assert fresh.name != first.name
    assert fresh.sessions == {}


def test_newest_session_of_a_row_counts(home: Home) -> None:
    ablation = settled(home)
    for second in (1, 2):
        plan = resolve(
            ablation.row_plan(ROWS[0]),
            home=home,
            environ=KEY,
            now=datetime(2026, 1, 2, 3, 4, second, tzinfo=UTC),
        )
        Recorder.begin(home, session_started(plan)).close()
    assert row_sessions(home, ablation.name)[1].name == plan.session


def test_plan_on_disk_keeps_series_and_chains(home: Home) -> None:
    write_recording(home.root, vector_add=[2] * 7)
    plan = resolve(
        settled(home, model="recorded:small", instances=1).row_plan(ROWS[6]), home=home, environ={}
    )
    live = home.live(plan.session)
    live.folder.mkdir(parents=True)
    write_plan(live, plan)
    assert read_plan(live) == plan


EXAMPLE = "A correct kernel for another task"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row {row.number}")
def test_row_switches_off_only_its_modules(row: AblationRow) -> None:
    context = ScriptedContext("wrong", "correct", "correct")
    context.options = MethodOptions(without=row.without)
    context.corpus = build_corpus(load_suite("starter"), [context.task])
    asyncio.run(Geak().run(context))
    calls = [call for attempt in context.attempts for call in attempt.calls]
    roles = {role for role, _ in calls}
    assert (Role.REFLECTOR in roles) == ("reflection" not in row.without)
    assert (Role.OPTIMIZER in roles) == ("optimizer" not in row.without)
    assert any(EXAMPLE in messages[-1].content for _, messages in calls) == ("one-shot" not in row.without)
    heads = [messages[0].content for role, messages in calls if role is not Role.REFLECTOR]
    page = knowledge_for(Setting(context.task, context.targets))[0].splitlines()[0]
    assert all((page in head) == ("knowledge" not in row.without) for head in heads)
    assert [attempt.evaluation.verdict for attempt in context.attempts if attempt.evaluation][:2] == [
        Verdict.WRONG,
        Verdict.CORRECT,
    ]
    assert len(context.attempts) == (2 if "optimizer" in row.without else 3)
