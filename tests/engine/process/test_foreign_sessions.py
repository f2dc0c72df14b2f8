"""Sessions of other homes: no engine follows their settings before a person trusts them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.process.launch import resume
from harness import Verdict
from sessions import Home, journal_of, list_sessions
from sessions.catalog import require_trust, trust_session
from sessions.errors import ForeignSession
from sessions.events import DecisionMade
from sessions.settings import MethodOptions
from sessions.store.reconcile import record_at_rest
from sessions.store.sharing import fetch_sessions, push_sessions
from sessions.store.store import Store
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.story import git

SESSION = stored.FIRST
MODEL = "openai:x@http://127.0.0.1:9/v1"
COMMAND = "sh -c 'touch stolen' {prompt}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def sender(tmp_path: Path) -> Home:
    """The home of a stranger, with an unfinished and a finished session that name a command and a server."""
    sender = Home(tmp_path / "sender")
    for session in (stored.FIRST, stored.SECOND):
        options = MethodOptions(agent_command=COMMAND)
        recorder = stored.begin(sender, session, model=MODEL, options=options)
        stored.attempt(recorder, 1, Verdict.CORRECT)
        recorder.now(recorder.flush())
        if session == stored.SECOND:
            stored.finish(recorder, best="softmax#1/1")
        else:
            recorder.close()
    return sender


def by_fetch(home: Home, sender: Home) -> None:
    fetch_sessions(home, str(sender.store), on_progress=lambda _: None)


def by_plain_fetch(home: Home, sender: Home) -> None:
    home.ensure()
    with Store.of(home):
        git(home.store, "fetch", "-q", str(sender.store), "refs/heads/*:refs/heads/*")


def by_fetch_of_all_refs(home: Home, sender: Home) -> None:
    home.ensure()
    with Store.of(home):
        git(home.store, "fetch", "-q", str(sender.store), "+refs/*:refs/*")


def by_bare_clone(home: Home, sender: Home) -> None:
    home.ensure()
    subprocess.run(["git", "clone", "-q", "--bare", str(sender.store), str(home.store)], check=True)


def by_fetch_into_new_repository(home: Home, sender: Home) -> None:
    home.ensure()
    subprocess.run(["git", "init", "-q", "--bare", str(home.store)], check=True)
    git(home.store, "fetch", "-q", str(sender.store), "refs/heads/*:refs/heads/*")


@pytest.mark.parametrize(
    "bring",
    [by_fetch, by_plain_fetch, by_fetch_of_all_refs, by_bare_clone, by_fetch_into_new_repository],
)
def test_no_engine_starts_for_a_session_of_a_stranger(
    home: Home, sender: Home, bring: Callable[[Home, Home], None]
) -> None:
    bring(home, sender)
    for session in (stored.FIRST, stored.SECOND):
        with pytest.raises(ForeignSession, match=r"run the command .*touch stolen.*openai:x@http"):
            resume(home, session)


@pytest.mark.parametrize(
    "command",
    [
        ["resume", stored.FIRST],
        ["steer", "extend", stored.SECOND, "--iterations", "2"],
        ["steer", "fork", stored.SECOND, "softmax#1/1"],
        ["steer", "edit", stored.SECOND, "softmax#1/1", __file__],
        ["steer", "measure", stored.SECOND, "softmax#1/1"],
        ["profile", stored.SECOND, "softmax#1/1"],
    ],
)
def test_commands_refuse_without_a_terminal_and_record_nothing(
    home: Home,
    sender: Home,
    command: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WAVEDECK_HOME", str(home.root))
    by_fetch(home, sender)
    session = next(word for word in command if word in (stored.FIRST, stored.SECOND))
    before = journal_of(home, session).events
    done = Shell(capsys)(*command)
    assert done.code == 2
    assert "came from another home" in one_line(done)
    assert "--trust-session" in one_line(done)
    assert journal_of(home, session).events == before


def test_trust_holds_until_somebody_else_continues_the_session(home: Home, sender: Home) -> None:
    by_fetch(home, sender)
    record_at_rest(home, stored.SECOND, DecisionMade(attempt="softmax#1/1", accepted=False, by="me"))
    with pytest.raises(ForeignSession):
        require_trust(home, stored.SECOND)
    trust_session(home, stored.SECOND)
    record_at_rest(home, stored.SECOND, DecisionMade(attempt="softmax#1/1", accepted=True, by="me"))
    require_trust(home, stored.SECOND)
    push_sessions(home, str(sender.store), [stored.SECOND], on_progress=lambda _: None)
    record_at_rest(sender, stored.SECOND, DecisionMade(attempt="softmax#1/1", accepted=False, by="other"))
    by_fetch(home, sender)
    with pytest.raises(ForeignSession):
        require_trust(home, stored.SECOND)


def test_own_sessions_stay_own_in_a_mirror_and_after_a_restart(home: Home, tmp_path: Path) -> None:
    stored.finished(home, stored.SECOND)
    stored.stopped(home, stored.FIRST)
    mirror = Home(tmp_path / "mirror")
    mirror.ensure()
    subprocess.run(["git", "clone", "-q", "--mirror", str(home.store), str(mirror.store)], check=True)
    for place in (home, mirror):
        assert len(list_sessions(place)) == 2
        for session in (stored.FIRST, stored.SECOND):
            require_trust(place, session)
