"""`wavedeck study`: plans, cells and estimates, and a cell that fails, after which the same command goes on."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import pytest

from engine.plan.job import session_started
from engine.plan.plan import resolve
from harness import Verdict
from sessions import Home, Recorder, list_sessions
from sessions import events as ev
from sessions.settings import Sampling
from suites.public.task import SuiteKind
from suites.registry import add_suite
from tests.suites.public import clones
from tests.support.command_line import Shell, one_line
from tests.support.engine.live_engines import right
from tests.support.engine.model_server import Answer, Seen, model_server, refuses, says
from tests.support.sessions import stored_sessions as stored
from tui.actions import study_plan
from tui.actions.study_plan import Study, read_study, shipped_plans
from tui.config import load
from tui.diagnostics import Complaint, ExitCode

PLAN = """
models = ["anthropic:test"]
tasks = ["vector_add", "softmax"]
instances = 2
iterations = 3
seeds = [1, 2]

[[methods]]
method = "geak"
without = ["optimizer"]

[[methods]]
method = "direct"
iterations = 1
"""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none-that-works")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, text: str = PLAN, name: str = "tables.toml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def study_of(folder: Path, text: str = PLAN, *tasks: str, **flags: str) -> Study:
    configured = load(flags, environ={}, folder=folder)
    return read_study(write(folder, text), tasks, configured, registry=folder / "suites.toml")


# Plans


def test_cells_combine_methods_models_and_seeds(folder: Path) -> None:
    study = study_of(folder, PLAN.replace('["anthropic:test"]', '["anthropic:a", "anthropic:b"]'))
    cells = [(cell.seed, cell.method, cell.model[-1], cell.iterations) for cell in study.cells]
    assert cells == [
        (seed, method, model, 1 if method == "direct" else 3)
        for seed in (1, 2)
        for method in ("geak", "direct")
        for model in ("a", "b")
    ]
    assert [cell.series for cell in study.cells] == [f"{study.name}/{number}" for number in range(1, 9)]
    assert {cell.tasks for cell in study.cells} == {("starter/vector_add", "starter/softmax")}
    assert {cell.options.without for cell in study.cells} == {("optimizer",), ()}
    assert not any(cell.stop_rules for cell in study.cells), "cells have equal budgets"


def test_same_plan_is_the_same_study_and_a_changed_plan_is_another(folder: Path) -> None:
    name = study_of(folder).name
    assert study_of(folder, "# a remark\n" + PLAN).name == name
    assert study_of(folder, PLAN, model="anthropic:other").name != name
    assert study_of(folder, PLAN, "softmax").name != name
    for old, new in (("iterations = 3", "iterations = 4"), ("[1, 2]", "[1, 3]"), ("optimizer", "knowledge")):
        assert study_of(folder, PLAN.replace(old, new)).name != name


def test_changed_text_of_a_task_is_another_study_and_a_label_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = study_of(folder).name
    labelled = (
        PLAN.replace('"direct"', '"direct"\nlabel = "one answer"') + '[labels]\n"anthropic:test" = "Test"\n'
    )
    study = study_of(folder, labelled)
    assert study.name == name
    assert [(cell.label, cell.model_label, cell.cells) for cell in study.cells[:2]] == [
        ("", "Test", 4),
        ("one answer", "Test", 4),
    ]
    tuned = study_of(folder, PLAN.replace('"direct"', '"geak"\ntune = true'))
    assert [cell.label for cell in tuned.cells[:2]] == ["", "geak (tune)"], "names differ as options do"
    monkeypatch.setattr(study_plan, "FILES", ("task.toml",))
    assert study_of(folder).name != name


def test_instructions_of_another_clone_make_another_study_of_a_benchmark(folder: Path) -> None:
    registry = folder / "suites.toml"
    add_suite("tritonbench-revised", clones.geak_eval(folder / "GEAK-eval"), registry)
    text = PLAN.replace('["vector_add", "softmax"]', '["tritonbench-revised/scale"]')
    before = study_of(folder, text)
    assert before.coverage == ("1 of 1 task of tritonbench-revised",)
    assert study_of(folder, text).name == before.name
    add_suite(
        "tritonbench-g", clones.tritonbench(folder / "TritonBench"), registry, kind=SuiteKind.TRITONBENCH_G
    )
    assert study_of(folder, text).name != before.name


def test_sampling_of_a_plan_is_by_role_and_a_method_may_have_its_own(folder: Path) -> None:
    text = PLAN.replace(
        "iterations = 1\n", "iterations = 1\nsampling = {all = {temperature = 0.2, top_p = 0.9}}\n"
    )
    text += "[sampling.reflector]\neffort = 'high'\n"
    first, second = study_of(folder, text).cells[:2]
    assert first.sampling == {"reflector": Sampling(effort="high")}
    assert second.sampling == {"all": Sampling(temperature=0.2, top_p=0.9)}
    assert study_of(folder, text).name != study_of(folder).name
    with pytest.raises(Complaint, match=r"sampling .* must be a table for each role"):
        study_of(folder, text.replace("0.9", "1.5"))


def test_cells_without_seeds_share_one_that_the_next_run_finds_again(folder: Path) -> None:
    text = PLAN.replace("seeds = [1, 2]", "")
    first, again = study_of(folder, text), study_of(folder, text)
    assert len({cell.seed for cell in first.cells}) == 1
    assert [cell.seed for cell in again.cells] == [cell.seed for cell in first.cells]


def test_sample_is_drawn_by_its_seed_and_a_larger_sample_contains_it(folder: Path) -> None:
    def drawn(size: int, seed: int) -> set[str]:
        text = PLAN.replace('tasks = ["vector_add", "softmax"]', f"sample = {size}\nsample-seed = {seed}")
        return set(study_of(folder, text).cells[0].tasks)

    assert drawn(3, 1) == drawn(3, 1)
    assert drawn(3, 1) < drawn(5, 1)
    assert len({frozenset(drawn(3, seed)) for seed in range(5)}) > 1
    with pytest.raises(Complaint, match="sample = 99 is more than the"):
        drawn(99, 1)


def test_cells_with_a_recording_play_its_chains_one_after_the_other(folder: Path) -> None:
    text = PLAN.replace("anthropic:test", "recorded:mine")
    assert [cell.first_chain for cell in study_of(folder, text).cells] == [1, 3, 5, 7]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("iterations = 3", "iteratons = 3", r"line 5: unknown key 'iteratons'; did you mean 'iterations'\?"),
        ("without =", "wihtout =", r"line 10: unknown key 'wihtout'; did you mean 'without'\?"),
        (
            "seeds = [1, 2]",
            "seeds = 1",
            r"line 6: seeds must be a list of whole numbers, for example \[1, 2\]",
        ),
        ("seeds = [1, 2]", "review = 'manual'", "unknown key 'review'"),
        ("iterations = 1", "iterations = 0", "iterations must be a whole number from 1 to 1,000,000, not 0"),
        ("[[methods]]", "[[runs]]", "unknown key 'runs'"),
        ('models = ["anthropic:test"]', "", "names no model for geak; add --model P:NAME, or models = "),
        ('"softmax"', '"sofmax"', "softmax"),
        ("models = [", "models = [[", "fix the TOML there"),
    ],
)
def test_wrong_plan_is_one_line_with_the_place_and_the_right_key(
    shell: Shell, folder: Path, old: str, new: str, complaint: str
) -> None:
    done = shell("study", write(folder, PLAN.replace(old, new)), "--dry-run")
    assert done.code == ExitCode.USAGE
    assert re.search(complaint, one_line(done)), done.err


def test_plans_that_ship_are_found_by_name(shell: Shell, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")  # a dry run asks no model
    assert shipped_plans() == ["ablation", "geak-tables", "kernelbench-x"]
    assert "did you mean ablation?" in one_line(shell("study", "ablatoin", "--dry-run"))
    for plan, cells in (("ablation", 7), ("geak-tables", 4), ("kernelbench-x", 5)):
        done = shell("study", plan, "vector_add", "--model", "anthropic:test", "--dry-run")
        assert done.code == ExitCode.DONE, done.err
        assert f"{cells} cells to run, at most" in done.out
        assert re.search(r"tasks: 1 of \d+ tasks of starter", done.out)
    assert list_sessions(home) == []


def test_ablation_adds_one_module_at_a_time_and_leaves_each_out_once(folder: Path) -> None:
    study = read_study(
        "ablation",
        ("vector_add",),
        load({"model": "anthropic:test"}, environ={}, folder=folder),
        registry=folder / "suites.toml",
    )
    modules = {"knowledge", "one-shot", "optimizer", "reflection"}
    rows = [modules - set(cell.options.without) for cell in study.cells]
    assert [len(row) for row in rows[:4]] == [1, 2, 3, 4]
    assert rows[0] < rows[1] < rows[2] < rows[3]
    assert {frozenset(modules - rows[row]) for row in (2, 4, 5, 6)} == {frozenset({name}) for name in modules}


# Sessions of cells, written by the recorder


def record(home: Home, study: Study, number: int) -> str:
    """Record the session of a cell with one attempt of two calls; return its name."""
    plan = resolve(study.cells[number - 1], home=home, environ=os.environ)
    with Recorder.begin(home, session_started(plan)) as recorder:
        recorder.record(ev.EngineStarted(host="node", pid=1))
        recorder.record(ev.InstanceStarted(task="starter/vector_add", instance=1))
        recorder.record(ev.AttemptStarted(attempt="vector_add#1/1", origin=ev.Origin.FRESH))
        call = "vector_add#1/1/generator/1"
        recorder.record(
            ev.CallStarted(
                call=call, attempt="vector_add#1/1", role=ev.Role.GENERATOR, model=plan.model, messages=()
            )
        )
        served = ev.ServedModel("test-20261101", "messages", {"temperature": 1.0})
        recorder.record(
            ev.CallFinished(call=call, text=right(), usage=ev.Usage(1000, 100), cost_usd=0.25, served=served)
        )
        evaluation = stored.evaluation(Verdict.CORRECT, message="no")
        recorder.record(ev.AttemptJudged(attempt="vector_add#1/1", evaluation=evaluation))
        recorder.record(ev.DecisionMade(attempt="vector_add#1/1", accepted=True, by="ada"))
        recorder.record(ev.InstanceFinished(task="starter/vector_add", instance=1, reason="iterations"))
        recorder.record(ev.SessionFinished())
        recorder.now(recorder.finish())
    return plan.session


def test_estimate_is_from_past_sessions_and_the_rest_is_unknown(
    shell: Shell, home: Home, folder: Path
) -> None:
    home.ensure()
    study = study_of(folder)
    unknown = shell("study", str(study.file), "--dry-run").out
    assert "at most 32 attempts" in unknown
    assert "cost: unknown" in unknown
    assert "time: unknown" in unknown
    record(home, study, 1)
    done = shell("study", str(study.file), "--dry-run").out
    assert "3 cells to run, at most 20 attempts" in done, "the finished cell is not counted"
    assert "cost: about $3.00; unknown for 2 further cells" in done, "12 attempts of geak at $0.25"
    assert "figures per attempt of 1 past session" in done


def test_estimate_of_a_new_model_has_the_tokens_of_another_at_its_price(
    shell: Shell, home: Home, folder: Path
) -> None:
    home.ensure()
    record(home, study_of(folder), 1)
    plan = write(folder, PLAN, "other.toml")
    done = shell("study", plan, "--model", "anthropic:claude-haiku-4-5", "--dry-run").out
    # 12 attempts in each of 2 cells, 1000 tokens at $1 and 100 at $5 per million.
    assert "cost: about $0.0360; unknown for 2 further cells" in done
    assert "in 2 cells tokens of other models at this model's price" in done
    assert "time: unknown" in done


def test_without_a_terminal_nothing_starts_unless_told_so(shell: Shell, home: Home, folder: Path) -> None:
    done = shell("study", write(folder))
    assert done.code == ExitCode.USAGE
    assert "add -y, or --dry-run" in one_line(done)
    assert list_sessions(home) == []


def test_person_is_asked_before_anything_starts(
    shell: Shell, home: Home, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    done = shell("study", write(folder))
    assert done.code == ExitCode.NO, "Enter alone is no"
    assert "nothing was started" in done.err
    assert list_sessions(home) == []


def test_finished_study_runs_nothing_and_its_cells_are_shown(shell: Shell, home: Home, folder: Path) -> None:
    home.ensure()
    study = study_of(folder)
    sessions = [record(home, study, number) for number in range(1, 5)]
    done = shell("study", str(study.file))
    assert done.code == ExitCode.DONE, done.err
    assert f"next: wavedeck report {study.name}" in done.out
    assert all(session in done.out for session in sessions)
    assert len(list_sessions(home)) == 4
    by_name = shell("study", study.name[:-3])
    assert by_name.code == ExitCode.DONE
    assert by_name.out.count("finished") == 4
    assert f"study {study.name}\n" in by_name.out
    listed = json.loads(shell("study", "--json").out)
    assert listed["studies"] == [{"name": study.name, "sessions": 4, "finished": 4}]
    assert "geak (without optimizer)" in shell("sessions", "show", sessions[0]).out
    assert f"part of {study.name}/1" in shell("sessions", "show", sessions[0]).out
    assert (
        "served as test-20261101, messages, temperature 1" in shell("show", sessions[0], "vector_add#1/1").out
    )


def test_recording_of_a_study_has_chains_for_each_of_its_cells(
    shell: Shell, home: Home, folder: Path
) -> None:
    home.ensure()
    study = study_of(folder, PLAN.replace("instances = 2", "instances = 1"), "vector_add")
    for number in range(1, 5):
        record(home, study, number)
    assert shell("sessions", "record", study.name, "mine").code == ExitCode.DONE
    again = shell("study", str(study.file), "vector_add", "--model", "recorded:mine", "--dry-run")
    assert again.code == ExitCode.DONE, again.err
    assert "cost: none, because no model is asked" in again.out
    more = shell("study", write(folder), "vector_add", "--model", "recorded:mine", "--dry-run")
    assert re.search(
        r"2 is more than the 0 that recorded:mine has for vector_add from chain \d", one_line(more)
    )


@pytest.mark.usefixtures("scripted_judge", "engines")
def test_failed_cell_does_not_stop_the_next_and_the_same_command_goes_on(
    shell: Shell, home: Home, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVEDECK_MODEL_KEY", "a-key")
    refused = ["bad"]

    def reply(seen: Seen) -> Answer:
        return refuses(401, message="no such key") if seen.body["model"] in refused else says(right())

    with model_server(answer=reply) as server:
        models = f'models = ["openai:bad@{server.openai_url}", "openai:test@{server.openai_url}"]'
        plan = f'{models}\ntasks = ["vector_add"]\ndevices = ["cpu"]\ninstances = 1\n[[methods]]\nmethod = "direct"\n'
        failed = shell("study", write(folder, plan), "-y")
        assert failed.code == ExitCode.FAILED
        assert "no such key" in failed.err
        assert "1 of 2 cells are finished; the same command runs the others" in failed.out
        refused.clear()
        done = shell("study", write(folder, plan), "-y")
        assert done.code == ExitCode.DONE, done.err
        requests = len(server.requests)
        again = shell("study", write(folder, plan), "-y")
        assert (again.code, len(server.requests)) == (ExitCode.DONE, requests), "no cell runs twice"
    assert "so far: 2 of 2 cells, 2 attempts" in done.err
    assert len(list_sessions(home)) == 2
