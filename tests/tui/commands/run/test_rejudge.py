"""`wavedeck recheck --attempts`: a second judgement is a session of its own, and the verdicts of then and now are compared."""

from __future__ import annotations

import json

import pytest

from engine.process import launch
from harness import Verdict
from sessions import Home, fold
from sessions.catalog import journal_of, list_sessions
from tests.support.command_line import ROOT, Shell, one_line
from tests.support.engine.engines import candidate
from tests.support.sessions import stored_sessions as stored
from tui.commands.run.rejudge import judged_attempts
from tui.diagnostics import ExitCode


@pytest.fixture
def source(home: Home) -> str:
    """A session of three attempts. Its sources name their verdicts of now: the third is no longer correct."""
    recorder = stored.begin(home)
    stored.attempt(recorder, 1, Verdict.WRONG, message="it differs", source=candidate("correct", "1"))
    stored.attempt(recorder, 2, Verdict.CORRECT, source=candidate("correct", "2"))
    stored.attempt(recorder, 3, Verdict.CORRECT, source=candidate("rejected", "3"))
    stored.finish(recorder)
    return stored.FIRST


def test_second_judgement_is_a_session_and_is_compared(
    home: Home, shell: Shell, source: str, engines: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "ENGINE", "tests.support.engine.quick_engine")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    before = journal_of(home, source).events
    done = shell("recheck", source, "--attempts", "all", "--devices", "cpu")
    assert done.code == ExitCode.NO, "attempt 3 was correct"
    again = next(info for info in list_sessions(home) if info.name != source)
    assert (again.state, again.settings.method, again.settings.options.rejudges) == (
        "finished",
        "rejudge",
        source,
    )
    assert journal_of(home, source).events == before
    state = fold(journal_of(home, again.name).events)
    assert [(attempt.attempt, attempt.origin, attempt.base) for attempt in state.attempts()] == [
        ("softmax#1/1", "fresh", None),
        ("softmax#1/2", "repair", "softmax#1/1"),
        ("softmax#1/3", "repair", "softmax#1/2"),
    ]
    assert all(not attempt.calls for attempt in state.attempts())
    lines = done.out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("then \\ now"))
    assert [line.split() for line in lines[place : place + 3]] == [
        ["then", "\\", "now", "correct", "rejected"],
        ["correct", "1", "1"],
        ["wrong", "1"],
    ]
    assert "3 attempts judged again: 1 unchanged, 2 with another verdict" in lines
    assert [line.split() for line in lines if "softmax#1/" in line] == [
        ["softmax", "softmax#1/3", "broke", "correct", "rejected", "scripted", "verdict:", "rejected"],
        ["softmax", "softmax#1/1", "now", "correct", "wrong", "correct", "then:", "it", "differs"],
    ]
    document = json.loads(shell("recheck", again.name, "--attempts", "all", "--json").out)
    assert (document["session"], document["rejudges"]) == (again.name, source)
    assert {(cell["then"], cell["now"]): cell["attempts"] for cell in document["matrix"]} == {
        ("correct", "correct"): 1,
        ("correct", "rejected"): 1,
        ("wrong", "correct"): 1,
    }
    assert len(list_sessions(home)) == 2, "the second judgement is read, not made again"


def test_attempt_without_a_verdict_is_not_judged_again(home: Home, source: str) -> None:
    state = fold(journal_of(home, source).events)
    state.attempt("softmax#1/3").judged = None
    assert [attempt.attempt for attempt in judged_attempts(state)] == ["softmax#1/1", "softmax#1/2"]


def test_every_session_of_a_study_is_tried(home: Home, shell: Shell) -> None:
    for cell, name in enumerate((stored.FIRST, stored.SECOND), start=1):
        stored.finish(stored.begin(home, name, series=f"plan-123abc/{cell}"), best="")
    done = shell("recheck", "plan", "--attempts", "all", "--devices", "cpu")
    assert done.code == ExitCode.USAGE
    for number, name in enumerate((stored.FIRST, stored.SECOND), start=1):
        assert f"session {number} of 2: {name}" in done.err
        assert f"session {name} has no attempt with a verdict and a reply to judge again" in done.err


def test_what_cannot_be_judged_again_is_one_line(home: Home, shell: Shell, source: str) -> None:
    assert "no verdict on a task of a benchmark" in one_line(shell("export", source, "out", "--results"))
    assert "rejudge needs candidates" in one_line(shell("run", "softmax", "--method", "rejudge"))
