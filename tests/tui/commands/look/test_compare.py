"""`wavedeck compare` and the comparison of two marked sessions at Home."""

from __future__ import annotations

import json
import sys

import pytest

from harness import Verdict
from sessions import Home, Recorder
from sessions import events as ev
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions import story

SENTENCE = "B solved 1 task more of 1 (95 %: -0.9 to 1.0, over the 1 task that only one side solved): the difference is not proven (p = 1)."


def two_sessions(home: Home) -> None:
    """Store a session with two wrong attempts, then a session with a correct second attempt."""
    recorder = stored.begin(home)
    for number in (1, 2):
        stored.attempt(recorder, number, Verdict.WRONG)
    stored.finish(recorder, best="")
    stored.finished(home, stored.SECOND)


def test_page_says_whether_the_difference_is_proven(home: Home, shell: Shell) -> None:
    two_sessions(home)
    for form in ("table", "md"):
        done = shell("compare", stored.FIRST, stored.SECOND, "--format", form)
        assert done.code == 0
        assert SENTENCE in done.out
        assert "Speeds are not compared: no task is solved by both." in done.out


def test_json_has_the_figures(home: Home, shell: Shell) -> None:
    two_sessions(home)
    document = json.loads(
        shell("compare", stored.SECOND, stored.FIRST, "--at", "tokens", "--format", "json").out
    )
    assert document["solved"]["value"] == -1
    assert document["pairs"][0]["budget"] == [2400, 2400]
    assert stored.SECOND in document["sides"]["A"]


def test_what_cannot_be_compared_is_refused(home: Home, shell: Shell) -> None:
    two_sessions(home)
    assert "have the same session" in one_line(shell("compare", "latest", stored.SECOND))
    stored.finish(stored.begin(home, "20260102-050607-geak-cccc"), best="")
    unjudged = one_line(shell("compare", "20260102-050607", stored.FIRST))
    assert "no attempt of 20260102-050607 was judged yet" in unjudged
    refusal = one_line(shell("compare", stored.FIRST, stored.SECOND, "--at", "usd"))
    assert "unknown number of US dollars: 2; compare at equal attempts" in refusal


def study_of_models(home: Home, *models: str) -> None:
    """Store a study with a session of each model; later models need more attempts."""
    for number, model in enumerate(models, start=1):
        name, series = f"2026010{number}-030405-geak-aaaa", f"tables-3f2a91/{number}"
        recorder = stored.begin(home, name, model=model, series=series)
        for wrong in range(1, number):
            stored.attempt(recorder, wrong, Verdict.WRONG)
        stored.attempt(recorder, number, Verdict.CORRECT)
        stored.finish(recorder, best=f"softmax#1/{number}")


def test_models_of_a_study_are_compared_by_its_name(home: Home, shell: Shell) -> None:
    study_of_models(home, "recorded:a", "recorded:b")
    page = shell("compare", "tables", "--by", "model").out
    assert "A             20260101-030405-geak-aaaa, geak, recorded:a, seed 7" in page
    assert "A solved 1 task more of 1" in page
    refusal = one_line(shell("compare", "tables", "--by", "method"))
    assert "only one method has judged attempts (geak)" in refusal


def test_each_two_of_three_models_are_a_row(home: Home, shell: Shell) -> None:
    study_of_models(home, "recorded:a", "recorded:b", "recorded:c")
    lines = shell("compare", "tables", "--by", "model").out.splitlines()
    assert [line.split()[:5] for line in lines if line.lstrip().startswith("recorded:")] == [
        ["recorded:a", "recorded:b", "1", "1", "0"],
        ["recorded:a", "recorded:c", "1", "1", "0"],
        ["recorded:b", "recorded:c", "1", "1", "0"],
    ], "within the budget that both reached, the first is right"
    document = json.loads(shell("compare", "tables", "--by", "model", "--format", "json").out)
    assert document["pairs"][0]["sides"] == ["recorded:a", "recorded:b"]


def test_sides_without_a_common_task_are_one_line(home: Home, shell: Shell) -> None:
    stored.finished(home)
    started = story.started(stored.SECOND, tasks=("starter/flip",))
    recorder = Recorder.begin(home, started, clock=stored.ticking())
    recorder.record(ev.InstanceStarted(task="starter/flip", instance=1))
    recorder.record(ev.AttemptStarted(attempt="flip#1/1", origin=ev.Origin.FRESH))
    recorder.record(ev.AttemptJudged(attempt="flip#1/1", evaluation=stored.evaluation(Verdict.WRONG)))
    recorder.close()
    refusal = one_line(shell("compare", stored.FIRST, stored.SECOND))
    assert "A and B have no common task: A has softmax, B has flip" in refusal


def test_what_needs_scipy_says_how_to_get_it(
    home: Home, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_sessions(home)
    monkeypatch.setitem(sys.modules, "scipy", None)
    refusal = one_line(shell("compare", stored.FIRST, stored.SECOND))
    assert "scipy is not installed; get it with: pip install 'wavedeck[reports]'" in refusal


def test_two_kernels_need_their_task(shell: Shell) -> None:
    assert "--task TASK" in one_line(shell("compare", "A.py", "B.py"))
    assert "--task and --devices are for two kernel files" in one_line(
        shell("compare", "x", "y", "--task", "t")
    )
