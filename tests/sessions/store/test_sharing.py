"""Push and fetch of sessions through a bare repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness import Verdict
from sessions import Home, journal_of, list_sessions
from sessions.errors import BranchDiffers, NoSuchSession, RemoteUnusable, StoreDamaged
from sessions.events import DecisionMade, SessionTitled
from sessions.store.reconcile import record_at_rest, take_up
from sessions.store.sharing import FETCHED, fetch_sessions, push_sessions
from sessions.store.store import Store
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.story import assert_sound, git


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """An empty bare repository."""
    path = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    return path


def ignore(line: str) -> None:
    """Ignore a line of progress."""


def test_pushed_session_is_fetched_into_another_home(home: Home, remote: Path, tmp_path: Path) -> None:
    stored.finished(home, stored.FIRST)
    stored.stopped(home, stored.SECOND)
    assert push_sessions(home, str(remote), on_progress=ignore).sessions == (stored.FIRST, stored.SECOND)
    assert push_sessions(home, str(remote), on_progress=ignore).sessions == ()
    second_home = Home(tmp_path / "other")
    shared = fetch_sessions(second_home, str(remote), [stored.FIRST[:15]], on_progress=ignore)
    assert shared.sessions == (stored.FIRST,)
    assert [info.name for info in list_sessions(second_home)] == [stored.FIRST]
    assert journal_of(second_home, stored.FIRST).events == journal_of(home, stored.FIRST).events
    assert_sound(second_home.store)
    assert FETCHED not in git(second_home.store, "for-each-ref")
    assert fetch_sessions(second_home, str(remote), on_progress=ignore).unchanged == (stored.FIRST,)


def test_session_that_went_on_is_pushed_and_fetched_again(home: Home, remote: Path, tmp_path: Path) -> None:
    recorder = stored.begin(home)
    stored.attempt(recorder, 1, Verdict.WRONG)
    recorder.now(recorder.flush())
    push_sessions(home, str(remote), on_progress=ignore)
    second_home = Home(tmp_path / "other")
    fetch_sessions(second_home, str(remote), on_progress=ignore)
    assert not second_home.files(stored.FIRST).has_journal
    before = len(journal_of(second_home, stored.FIRST).events)
    assert second_home.files(stored.FIRST).stored_journal.exists()
    stored.attempt(recorder, 2, Verdict.CORRECT)
    stored.finish(recorder)
    assert push_sessions(home, str(remote), on_progress=ignore).sessions == (stored.FIRST,)
    assert fetch_sessions(second_home, str(remote), on_progress=ignore).sessions == (stored.FIRST,)
    assert len(journal_of(second_home, stored.FIRST).events) > before


def test_decisions_of_another_home_stay_out_of_this_home(home: Home, remote: Path, tmp_path: Path) -> None:
    bob = Home(tmp_path / "bob")
    stored.finished(bob, stored.SECOND)
    record_at_rest(bob, stored.SECOND, DecisionMade(attempt="softmax#1/2", accepted=True, by="bob"))
    stored.finished(home, stored.FIRST)
    record_at_rest(home, stored.FIRST, DecisionMade(attempt="softmax#1/2", accepted=True, by="alice"))
    push_sessions(home, str(remote), on_progress=ignore)
    fetch_sessions(bob, str(remote), on_progress=ignore)

    def accepted_by() -> str:
        with Store.read_only(bob.store) as store:
            return store.accepted()["starter/softmax"].by

    take_up(bob, stored.FIRST).close()
    assert accepted_by() == "bob"
    record_at_rest(bob, stored.FIRST, DecisionMade(attempt="softmax#1/1", accepted=False, by="bob"))
    assert accepted_by() == "bob"
    record_at_rest(bob, stored.FIRST, DecisionMade(attempt="softmax#1/2", accepted=True, by="carol"))
    assert accepted_by() == "carol"
    assert_sound(bob.store)


def test_lost_store_does_not_make_fetched_decisions_count(home: Home, tmp_path: Path) -> None:
    bob = Home(tmp_path / "bob")
    record_at_rest(
        home, stored.finished(home), DecisionMade(attempt="softmax#1/2", accepted=True, by="alice")
    )
    fetch_sessions(bob, str(home.store), on_progress=ignore)
    journal_of(bob, stored.FIRST)
    shutil.rmtree(bob.store)
    take_up(bob, stored.FIRST).close()
    with Store.of(bob) as store:
        assert store.accepted() == {}
        assert not store.is_own(stored.FIRST)


def test_fetch_after_the_store_was_lost_does_not_replace_a_longer_journal(home: Home, remote: Path) -> None:
    stored.finished(home)
    push_sessions(home, str(remote), on_progress=ignore)
    record_at_rest(home, stored.FIRST, SessionTitled(title="mine"))
    shutil.rmtree(home.store)
    with pytest.raises(StoreDamaged, match="doctor --repair"):
        fetch_sessions(home, str(remote), on_progress=ignore)
    assert list_sessions(home)[0].title == "mine"
    take_up(home, stored.FIRST).close()
    push_sessions(home, str(remote), on_progress=ignore)


def test_branch_with_other_commits_is_refused_and_kept(home: Home, remote: Path, tmp_path: Path) -> None:
    stored.finished(home, stored.FIRST)
    push_sessions(home, str(remote), on_progress=ignore)
    second_home = Home(tmp_path / "other")
    recorder = stored.begin(second_home, stored.FIRST, model="openai:m")
    stored.attempt(recorder, 1, Verdict.CORRECT, speedup=2.0)
    stored.finish(recorder, best="softmax#1/1")
    stored.finished(second_home, stored.SECOND)
    before = git(remote, "for-each-ref"), git(second_home.store, "for-each-ref")
    with pytest.raises(BranchDiffers, match=f"the branch {stored.FIRST}/.* nothing was changed"):
        push_sessions(second_home, str(remote), on_progress=ignore)
    with pytest.raises(BranchDiffers):
        fetch_sessions(second_home, str(remote), on_progress=ignore)
    assert (git(remote, "for-each-ref"), git(second_home.store, "for-each-ref")) == before


def test_session_with_live_files_is_not_overtaken_by_a_fetch(
    home: Home, remote: Path, tmp_path: Path
) -> None:
    stored.stopped(home, stored.FIRST)
    push_sessions(home, str(remote), on_progress=ignore)
    second_home = Home(tmp_path / "other")
    fetch_sessions(second_home, str(remote), on_progress=ignore)
    with take_up(second_home, stored.FIRST) as recorder:
        stored.attempt(recorder, 2, Verdict.CORRECT)
        stored.finish(recorder)
    push_sessions(second_home, str(remote), on_progress=ignore)
    with pytest.raises(BranchDiffers):
        fetch_sessions(home, str(remote), on_progress=ignore)


def test_errors_of_git_are_one_line(
    home: Home,
    tmp_path: Path,
    remote: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WAVEDECK_HOME", str(home.root))
    shell = Shell(capsys)
    assert one_line(shell("sessions", "push", str(remote))) == "wavedeck: pushed nothing"
    stored.finished(home, stored.FIRST)
    gone = shell("sessions", "push", str(tmp_path / "gone.git"))
    assert gone.code == 2
    assert "check its address and your access" in one_line(gone)
    assert "git cannot use the repository" in one_line(shell("sessions", "fetch", "--", "--upload-pack=true"))
    with pytest.raises(NoSuchSession):
        push_sessions(home, str(remote), ["2031"], on_progress=ignore)
    pushed = shell("sessions", "push", str(remote))
    assert one_line(pushed) == f"wavedeck: pushed 1 session: {stored.FIRST}"
    assert one_line(shell("sessions", "push", str(remote))).endswith("has 1 session already")


@pytest.mark.parametrize("address", ["ext::sh -c true", "fd::7", "other::x"])
def test_helper_of_git_is_no_remote(home: Home, address: str) -> None:
    stored.finished(home, stored.FIRST)
    for exchange in (push_sessions, fetch_sessions):
        with pytest.raises(RemoteUnusable, match="a remote helper of git"):
            exchange(home, address, on_progress=ignore)


def test_variables_that_reach_a_remote_are_kept(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.finished(home, stored.FIRST)
    command, called = tmp_path / "ssh", tmp_path / "called"
    command.write_text(f"#!/bin/sh\necho no way in >&2\necho $* > {called}\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(command))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    with pytest.raises(RemoteUnusable, match="no way in"):
        push_sessions(home, "ssh://node/store.git", on_progress=ignore)
    assert "node" in called.read_text()
