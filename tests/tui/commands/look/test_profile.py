"""`wavedeck profile`: the kept page, two beside each other, as JSON; and a session without GPUs."""

from __future__ import annotations

import json

import msgspec
import pytest

from harness import Verdict
from harness.wire.results.kernel_counts import ProfiledLaunch
from sessions import Home
from sessions import events as ev
from sessions.store.reconcile import take_up
from tests.support.command_line import Shell, one_line
from tests.support.judge.profiles import softmax_profile
from tests.support.sessions import stored_sessions as stored
from tui.diagnostics import ExitCode


def record(home: Home) -> None:
    """Record a finished session with two profiled attempts and a profiled baseline."""
    recorder = stored.begin(home)
    for number in (1, 2):
        name = f"softmax#1/{number}"
        recorder.record(ev.AttemptStarted(attempt=name, origin=ev.Origin.FRESH))
        recorder.record(ev.CandidateProposed(attempt=name, source=stored.FAST))
        recorder.record(ev.AttemptJudged(attempt=name, evaluation=stored.evaluation(Verdict.CORRECT)))
    stored.attempt(recorder, 3, Verdict.WRONG, message="off")
    launches = (ProfiledLaunch("partial", 15.0), ProfiledLaunch("combine", 5.0))
    wide = msgspec.structs.replace(softmax_profile(case="wide"), launches=launches)
    for profile in (softmax_profile(case="square"), wide):
        recorder.record(ev.ProfileTaken(attempt="softmax#1/1", profile=profile))
    recorder.record(ev.ProfileTaken(attempt="softmax#1/1", of_baseline=True, profile=softmax_profile()))
    stored.finish(recorder)


def test_kept_profile_is_shown_with_its_limit_and_what_the_tool_needed_open(shell: Shell, home: Home) -> None:
    record(home)
    page = shell("profile", "softmax#1/1", "--case", "square").out
    assert page.startswith("profile, case square")
    lines = [" ".join(line.split()) for line in page.splitlines()]
    assert "memory, of its peak 70 %" in lines
    assert "read from memory 33.56 MB" in lines
    assert "stall 1 47 % a load from L2 or memory" in lines
    assert "softmax_kernel: memory limits: memory 70 %, matrix units 2 %, vector units 31 %." in lines
    assert any(line.startswith("The roofline names memory") for line in lines)
    assert any("needs open: user, capabilities." in line for line in lines)
    assert not any("launches of the call" in line for line in lines), "it is one launch"
    latest = [" ".join(line.split()) for line in shell("profile", "softmax#1/1").out.splitlines()]
    assert latest[0] == "profile, case wide"
    place = latest.index("launches of the call")
    assert latest[place + 2 : place + 4] == [
        "softmax#1/1 1 partial 15.0 75 %",
        "softmax#1/1 2 combine 5.00 25 %",
    ]


def test_profile_stands_beside_the_baseline(shell: Shell, home: Home) -> None:
    record(home)
    page = shell("profile", "softmax#1/1", "--case", "square", "--against", "baseline").out
    assert page.splitlines()[1].split("  ")[-1] == "baseline: softmax_kernel"
    assert page.splitlines()[1].split()[:2] == ["softmax#1/1:", "softmax_kernel"]
    document = json.loads(
        shell("profile", "softmax#1/1", "--case", "square", "--against", "baseline", "--json").out
    )
    assert list(document["profiles"]) == ["softmax#1/1", "baseline"]
    assert document["profiles"]["baseline"]["kernels"][0]["registers"] == 32


def test_impossible_profile_is_refused_in_one_line(shell: Shell, home: Home) -> None:
    record(home)
    for arguments, words in (
        (("softmax#1/2",), "has no GPU"),
        (("softmax#1/1", "--gpu", "7"), "has no GPU"),
        (
            ("softmax#1/1", "--against", "softmax#1/1"),
            "needs another attempt on starter/softmax, or `baseline`",
        ),
        (("softmax#1/1", "--against", "softmax#1/3"), "softmax#1/3 is not correct"),
        (("softmax#1/3",), "softmax#1/3 is not correct"),
        (("softmax#1/9",), "softmax#1/9"),
        ((stored.FIRST, stored.FIRST), f"no attempt '{stored.FIRST}'"),
        ((stored.FIRST, "softmax#1/1", "more"), "is too much"),
    ):
        refused = shell("profile", *arguments)
        assert words in one_line(refused), arguments
        assert refused.code == ExitCode.USAGE


def test_profile_that_an_ended_engine_left_undone_is_taken_by_the_next(
    shell: Shell, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(home)
    with take_up(home, stored.FIRST) as recorder:
        request = recorder.record(ev.ProfileAsked(attempt="softmax#1/2", device="0"))
        recorder.record(ev.EngineStopped(reason="interrupted"))

    def end_at_once(home: Home, session: str) -> None:
        """Do what an engine does that finds no GPU."""
        with take_up(home, session) as recorder:
            recorder.record(ev.EngineStopped(reason="no device '0' on this machine", failed=True))

    def resume(home: Home, session: str) -> None:
        """Do what the next engine does: take the profile that was asked for."""
        with take_up(home, session) as recorder:
            taken = ev.ProfileTaken(
                attempt="softmax#1/2", asked=request.seq, profile=softmax_profile(case="wide")
            )
            recorder.record(taken)
            recorder.record(ev.SessionFinished())

    monkeypatch.setattr("tui.actions.send.plan_at_rest", lambda *_: None)
    monkeypatch.setattr("tui.actions.send.resume", end_at_once)
    assert (
        "ended before the profile: no device '0' on this machine; see" in shell("profile", "softmax#1/2").err
    )
    monkeypatch.setattr("tui.actions.send.resume", resume)
    assert shell("profile", "softmax#1/2").out.startswith("profile, case wide")
