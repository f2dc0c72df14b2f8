"""`wavedeck status` and `report --best`: what a person reads away from the screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness import Verdict
from sessions import Home
from sessions import events as ev
from sessions.files import FileLock
from sessions.listing.info import running_infos
from sessions.store.recorder import Recorder
from tests.support.command_line import Shell, one_line
from tests.support.sessions import journals
from tests.support.sessions import stored_sessions as stored
from tests.test_imports import loaded_by
from tui.cockpit.draw.lines import plain
from tui.cockpit.screens.home.home_view import preview_lines, waits_cell
from tui.diagnostics import ExitCode
from tui.print import follow


@contextmanager
def running(home: Home, *, waiting: bool) -> Iterator[Recorder]:
    """Run a session on softmax; its second attempt is correct and timed."""
    with stored.begin(home) as recorder:
        stored.attempt(recorder, 1, Verdict.WRONG)
        timed = journals.correct(speed=journals.latencies())
        recorder.record(ev.AttemptStarted(attempt="softmax#1/2", origin=ev.Origin.REPAIR, base="softmax#1/1"))
        recorder.record(ev.AttemptJudged(attempt="softmax#1/2", evaluation=timed))
        if waiting:
            recorder.record(ev.WaitingForPerson(attempt="softmax#1/2"))
        yield recorder


@contextmanager
def engine_of(home: Home) -> Iterator[None]:
    """Hold the lock of a session, as its engine does."""
    lock = FileLock(home.files(stored.FIRST).lock)
    assert lock.acquire()
    try:
        yield
    finally:
        lock.release()


def test_short_status_is_one_line_and_empty_if_nothing_runs(shell: Shell, home: Home) -> None:
    assert shell("status", "--short") == (0, "", "")
    with running(home, waiting=True):
        line = shell("status", "--short")
    assert line == (0, "wavedeck 1 running  1/1 solved  best 1.20x softmax  ! 1\n", "")
    assert shell("status", "--short") == (0, "", ""), "no engine runs it now"


def test_status_names_what_waits(shell: Shell, home: Home) -> None:
    assert "no session runs; start one with: wavedeck run" in one_line(shell("status"))
    stored.finished(home, stored.SECOND)
    with running(home, waiting=True):
        shown = shell("status").out
        assert "softmax#1/2" in shown.splitlines()[1]
        assert stored.SECOND not in shown
        [info] = json.loads(shell("status", "--json").out)
        assert (info["name"], info["waiting"], info["attempts"]) == (stored.FIRST, ["softmax#1/2"], 2)
        assert "does not run" in one_line(shell("status", stored.SECOND))


def test_status_says_that_a_session_is_being_put_away(shell: Shell, home: Home) -> None:
    with running(home, waiting=False) as recorder:
        recorder.record(ev.EngineStopped(reason="lunch"))
        assert "being stored" not in shell("status").out, "an engine starts and cannot be reached yet"
        recorder.files.engine.write_text("{}")
        assert "being stored, " in shell("status").out
        [info] = json.loads(shell("status", "--json").out)
        assert info["putting_away_since"] == recorder.state.last_wall


def test_status_and_home_say_what_a_session_prepares(shell: Shell, home: Home) -> None:
    with stored.begin(home) as recorder:
        recorder.record(ev.BaselineStageStarted(task="starter/softmax", stage="compile"))
        assert "judging the baseline of softmax: compile, " in shell("status").out
        [info] = running_infos(home)
        assert waits_cell(info).text == "preparing"
        words = "judging the baseline of softmax: compile, 0:12"
        assert words in "\n".join(
            map(plain, preview_lines(info, None, now=info.preparing[0].since + 12.0, width=200, height=9))
        )


async def test_follower_says_once_that_a_session_is_being_put_away(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(follow, "AWAY_AFTER_S", 0.0)
    with running(home, waiting=False) as recorder:
        recorder.record(ev.SessionFinished(solved=()))
        printer = follow.EventPrinter(as_json=False)
        following = asyncio.create_task(follow.follow(home, stored.FIRST, printer, stoppable=False))
        shown = ""
        async with asyncio.timeout(60):
            while "is being put away in the store" not in shown:
                await asyncio.sleep(0.01)
                shown += capsys.readouterr().err
    assert await following is follow.FollowEnding.FINISHED
    assert "put away" not in capsys.readouterr().err


def test_short_status_loads_neither_git_nor_the_judge_nor_textual() -> None:
    loaded = loaded_by("from tui.cli import main; main(['status', '--short'])")
    assert "sessions.listing.info" in loaded
    assert loaded.isdisjoint(("git", "textual", "engine.process.control", "harness.processes.pool", "torch"))


def test_wait_returns_when_an_attempt_needs_a_decision(shell: Shell, home: Home) -> None:
    with running(home, waiting=True):
        assert shell("status", stored.FIRST[:15], "--wait", "review") == (0, "softmax#1/2\n", "")
    with engine_of(home):
        stored.finished(home, stored.SECOND)
        done = shell("status", "--wait", "end", "--timeout", "0")
    assert done.code == ExitCode.NO
    assert f"{stored.FIRST} still runs" in one_line(done)
    assert "--timeout needs --wait" in one_line(shell("status", "--timeout", "1"))


def test_wait_ends_with_the_session(shell: Shell, home: Home) -> None:
    stored.stopped(home, stored.FIRST)
    stored.finished(home, stored.SECOND)
    assert shell("status", stored.FIRST, "--wait", "end").code == 0
    assert shell("status", stored.SECOND, "--wait", "end").code == 0
    review = shell("status", stored.SECOND, "--wait", "review")
    assert review.code == ExitCode.NO
    assert "finished; no attempt waits" in one_line(review)


def test_wait_reports_an_engine_that_is_gone(shell: Shell, home: Home) -> None:
    with running(home, waiting=False):
        pass
    gone = shell("status", stored.FIRST, "--wait", "end")
    assert gone.code == ExitCode.FAILED
    assert f"wavedeck resume {stored.FIRST}" in one_line(gone)


def test_best_attempt_has_interval_device_and_versions(shell: Shell, home: Home) -> None:
    assert "no attempt was measured" in one_line(shell("report", "--best"))
    with running(home, waiting=False) as recorder:
        recorder.record(ev.EngineStopped(reason="asked"))
    [row] = [line.split("  ") for line in shell("report", "--best", "softmax").out.splitlines()[1:]]
    cells = [cell.strip() for cell in row if cell]
    assert cells[:4] == ["softmax", "1.20x [1.18, 1.23]", "2/2", "not examined"]
    assert cells[4:8] == ["triton", "H200 SXM", "3.7.1", "2.13.0"]
    assert cells[-2:] == [stored.FIRST, "softmax#1/2"]
    [best] = json.loads(shell("report", "--best", "--format", "json").out)
    assert best["session"] == stored.FIRST
    assert best["measured"]["product"] == "H200 SXM"
    unknown = shell("report", "--best", "rope")
    assert "no attempt of rope was measured; measured tasks: softmax" in one_line(unknown)
