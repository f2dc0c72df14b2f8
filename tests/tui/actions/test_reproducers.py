"""One case of an attempt, judged again from a shell line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness import Verdict
from sessions import Home, fold, journal_of
from sessions.store.recorder import Recorder
from suites import baseline_source, load_task
from tests.support.command_line import Shell, one_line, run_script
from tests.support.sessions import stored_sessions as stored
from tui.actions.reproducers import reproducer
from tui.diagnostics import Complaint, ExitCode


def test_line_has_the_kernel_the_case_and_the_inputs_of_the_session(home: Home) -> None:
    stored.finished(home)
    state = fold(journal_of(home, stored.FIRST).events)
    line = reproducer(home.store, state, "softmax#1/2", "row 'tail'")
    show, judge = line.split(" | ")
    printed = subprocess.run(show, shell=True, capture_output=True, text=True, check=True)  # noqa: S602
    assert printed.stdout == stored.FAST
    assert judge == """wavedeck eval - --task softmax --case 'row '"'"'tail'"'"'' --seed 7"""
    assert "--case" not in reproducer(home.store, state, "softmax#1/2")


def test_attempt_that_is_not_stored_has_no_line(home: Home) -> None:
    recorder: Recorder = stored.begin(home)
    stored.attempt(recorder, 1, Verdict.CORRECT)
    recorder.state.attempt("softmax#1/1").commit = None
    with pytest.raises(Complaint, match="not in the store yet"):
        reproducer(home.store, recorder.state, "softmax#1/1")
    recorder.close()


@pytest.mark.soak
@pytest.mark.judge
def test_chosen_case_runs_alone_and_is_no_verdict_about_the_task() -> None:
    task = load_task("vector_add")
    case = task.open_cases[-1].name
    arguments = ("eval", "-", "--task", "vector_add", "--devices", "cpu", "--seed", "3", "--case", case)
    done = run_script(*arguments, "--json", stdin=baseline_source(task))
    assert done.code == ExitCode.DONE
    evaluation = json.loads(done.out)
    assert evaluation["only_cases"] == [case]
    assert {margin["case"] for margin in evaluation["margins"]} == {case}, "hidden cases do not run"
    assert [traffic["case"] for traffic in evaluation["traffic"]] == [case]
    page = run_script(*arguments, stdin=baseline_source(task)).out
    assert f"correct in case {case} only, no verdict about the task" in page.splitlines()[0]


def test_unknown_case_error_names_the_nearest(shell: Shell, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("x = 1\n")
    done = shell("eval", str(kernel), "--task", "softmax", "--case", "fp3")
    assert done.code == ExitCode.USAGE
    assert "did you mean 'fp32'?" in one_line(done)
    refused = shell("eval", str(kernel), "--task", "softmax", "--case", "fp32", "--exam")
    assert "leave --exam out" in one_line(refused)
