"""`wavedeck suites` and `task check`: folders and clones of benchmarks can be added, seen, checked and removed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sessions import Home
from suites.public.task import SuiteKind
from tests.harness.oracle.test_strength import BASELINE
from tests.suites.folders import PROBLEM, TASK, write_folder
from tests.suites.public import clones
from tests.support.command_line import ROOT, Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tui.diagnostics import ExitCode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A person's folder with one task."""
    shutil.copytree(ROOT / "suites/starter/softmax", tmp_path / "mine" / "softmax")
    return tmp_path / "mine"


def test_added_suite_is_shown_and_removed_and_its_folder_stays(
    shell: Shell, home: Home, folder: Path
) -> None:
    assert shell("suites", "add", "mine", str(folder)).code == 0
    shown = json.loads(shell("suites", "show", "mine", "--json").out)
    assert (shown["folder"], shown["tasks"], shown["benchmark"]) == (str(folder), 1, None)
    assert "wavedeck suites list mine" in shell("suites", "show", "mine").out
    unsure = shell("suites", "remove", "mine")
    assert (unsure.code, "add --yes" in one_line(unsure)) == (ExitCode.USAGE, True)
    assert f"its folder stays: {folder}" in one_line(shell("suites", "remove", "mine", "-y"))
    assert (folder / "softmax" / "task.toml").is_file()
    assert "no suite is called 'mine'" in one_line(shell("suites", "show", "mine"))
    assert shell("suites", "add", "none", str(folder / "nowhere")).code == ExitCode.USAGE


def test_broken_task_is_named_by_the_check(shell: Shell, home: Home, tmp_path: Path) -> None:
    broken = tmp_path / "mine" / "thing"
    broken.mkdir(parents=True)
    (broken / "task.toml").write_text("schema = 1\n")
    assert shell("suites", "add", "mine", str(tmp_path / "mine")).code == 0
    checked = shell("task", "check", "mine", "--json")
    assert checked.code == ExitCode.NO
    assert {Path(problem["file"]).parent for problem in json.loads(checked.out)["problems"]} == {broken}
    assert "did you mean 'softmax'" in one_line(shell("task", "show", "sofmax"))


def test_clone_is_shown_and_removed_also_when_its_folder_is_gone(
    shell: Shell, home: Home, tmp_path: Path
) -> None:
    clone = clones.geak_eval(tmp_path / "GEAK-eval")
    assert shell("suites", "add", "tb", str(clone), "--kind", SuiteKind.TRITONBENCH_REVISED.value).code == 0
    shown = json.loads(shell("suites", "show", "tb", "--json").out)
    assert shown["benchmark"] == SuiteKind.TRITONBENCH_REVISED
    assert shown["tasks"] >= shown["unsupported"] >= 0 < shown["tasks"]
    clone.rename(tmp_path / "moved")
    assert shell("suites", "remove", "tb", "--yes").code == 0
    assert "tb" not in shell("suites").out


def test_suite_that_was_not_added_is_refused_in_one_line(shell: Shell, home: Home, folder: Path) -> None:
    assert shell("suites", "add", "mine", str(folder)).code == 0
    for name, words in (
        ("starter", "comes with Wavedeck"),
        ("own", "the tasks of your kernel files"),
        ("mime", "did you mean 'mine'?"),
    ):
        done = shell("suites", "remove", name, "-y")
        assert (done.code, words in one_line(done)) == (ExitCode.USAGE, True), name


def test_registry_that_cannot_be_read_is_one_line(shell: Shell, home: Home) -> None:
    home.suites.mkdir(parents=True)
    assert one_line(shell("suites", "show", "starter")) == (
        f"wavedeck: {home.suites} cannot be read (Is a directory); set WAVEDECK_HOME to a folder of yours"
    )


def test_session_opens_after_its_suite_was_removed(shell: Shell, home: Home, folder: Path) -> None:
    assert shell("suites", "add", "mine", str(folder)).code == 0
    stored.solved(home, {"mine/softmax": stored.FAST})
    assert shell("suites", "remove", "mine", "-y").code == 0
    for command in (
        ("replay",), ("report",), ("sessions", "show"), ("sessions",), ("show", "mine/softmax#1/1"),
        ("show", "mine/softmax#1/1", "--source"),
    ):  # fmt: skip
        assert shell(*command).code == 0, command
    again = shell("export", "mine/softmax#1/1", str(folder / "out"))
    assert (again.code, "no task is called 'mine/softmax'" in one_line(again)) == (ExitCode.USAGE, True)


def test_clone_is_added_listed_and_shown(shell: Shell, tmp_path: Path) -> None:
    clone = clones.arena(tmp_path / "AgentKernelArena")
    added = shell("suites", "add", "arena", str(clone))
    assert "arena: the clone has 3 of 426 tasks" in added.err
    assert "suite arena added: agentkernelarena, 3 tasks, 1 of them cannot be judged" in added.err

    tasks = json.loads(shell("suites", "list", "arena", "--json").out)
    assert {task["task"]: task["unsupported"] for task in tasks} == {
        "arena/instruction-rocmbench-test_scale": None,
        "arena/vllm-triton_scale": None,
        "arena/hip2hip-others-scale": "its candidates are HIP",
    }
    everything = json.loads(shell("suites", "list", "--json").out)
    assert {"starter/softmax", "arena/vllm-triton_scale"} <= {task["task"] for task in everything}

    table = shell("suites", "list", "arena").out
    judged, others = table.split("\n\n")
    assert "arena/vllm-triton_scale" in judged
    assert others.splitlines()[0].split("  ")[-1] == "why it cannot be judged"
    assert "its candidates are HIP" in others
    assert "wavedeck suites list arena" in shell("suites").out

    page = shell("task", "show", "arena/vllm-triton_scale").out
    assert "def scale(x: torch.Tensor, factor: float=2.0)" in page
    assert "oracle: reference_scale" in page
    assert "- Keep its signature." in page
    assert (
        "It cannot be judged: its candidates are HIP."
        in shell("task", "show", "arena/hip2hip-others-scale").out
    )
    shown = json.loads(shell("task", "show", "arena/vllm-triton_scale", "--json").out)
    assert shown["public_task"]["runner"] == "run_correctness"


def test_clone_of_two_benchmarks_needs_its_kind(shell: Shell, tmp_path: Path) -> None:
    clone = str(clones.tritonbench(tmp_path / "TritonBench"))
    refused = shell("suites", "add", "tb", clone)
    assert refused.code == ExitCode.USAGE
    assert "choose one with --kind" in refused.err
    assert shell("suites", "add", "tb", clone, "--kind", "tritonbench-g").code == 0
    assert "Scale a vector by a factor." in shell("task", "show", "tb/scale").out
    assert shell("eval", clone, "--task", "tb/scale").code == ExitCode.USAGE


@pytest.mark.judge
def test_task_check_judges_every_task(shell: Shell, tmp_path: Path) -> None:
    suite = tmp_path / "mine"
    write_folder(suite, baseline=BASELINE)
    weak = TASK.replace('"double"', '"weak"', 1).replace("atol = 0.0", "atol = 0.5")
    write_folder(
        suite, name="weak", task=weak, problem=PROBLEM.replace("2 * x", "1e-3 * x"), baseline=BASELINE
    )
    wrong = BASELINE.replace("x * 2", "x * 3")
    write_folder(suite, name="wrong", task=TASK.replace('"double"', '"wrong"', 1), baseline=wrong)
    eight_bits = TASK.replace('"double"', '"eight_bits"', 1).replace("float32", "float8_e4m3fn")
    write_folder(suite, name="eight_bits", task=eight_bits, baseline=BASELINE)
    assert shell("suites", "add", "mine", str(suite)).code == 0

    checked = shell("task", "check", "mine")
    assert checked.code == ExitCode.NO
    assert "mine/weak: weak oracle, case plain: accepted as `out`: zeros" in checked.out
    assert "mine/wrong: the baseline is wrong: case plain: output `out` is wrong at index [0]" in checked.out
    assert "no problem found" not in checked.out
    assert "mine/double:" not in checked.out
    assert "checking 4 tasks, " in checked.err
    assert "double is sound" in checked.err
    assert "eight_bits is sound" not in checked.err
    lines = [line for line in checked.out.splitlines() if line.startswith("mine/eight_bits:")]
    assert lines == [
        "mine/eight_bits: the baseline is unsupported: gfx942 has no float8_e4m3fn; judge the task for gfx950 or sm_90 (--targets)"
    ]
    assert "did you mean 'mine/double'" in one_line(shell("task", "check", "mine/doubl"))
