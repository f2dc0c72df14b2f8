"""Git as a projection: a session that is written anew from its journal has the commits that its engine wrote."""

from __future__ import annotations

import shutil

import pytest

from harness import Verdict
from sessions import Home, journal_of, record_at_rest, resume
from sessions import events as ev
from sessions.repairs import repairs
from sessions.store import projection
from sessions.store.reconcile import take_up
from sessions.store.sharing import push_sessions
from tests.support.sessions import story
from tests.support.sessions.story import SESSION, assert_sound, git


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pieces of the journal."""
    monkeypatch.setattr(projection, "PIECE_BYTES", 3000)


async def played(home: Home) -> None:
    """Record a session with a late reflection, an exam, a stop, a crash, and a decision at rest."""
    with story.begin(home) as recorder:
        await story.play(recorder, story.instance(1))
        events = list(story.attempt("softmax#2/1", Verdict.WRONG))
        judged = next(n for n, event in enumerate(events) if isinstance(event, ev.AttemptJudged))
        await story.play(recorder, events[: judged + 1])
        await recorder.commit_attempt("softmax#2/1")
        await story.play(recorder, events[judged + 1 :])
        recorder.record(ev.EngineStopped(reason="asked"))
        await recorder.flush()
    record_at_rest(home, SESSION, ev.SessionTitled(title="mine"))
    with resume(home, SESSION) as recorder:
        recorder.record(ev.EngineStarted(host="node", pid=2, resumed=True))
        await story.play(recorder, story.attempt("softmax#2/2", Verdict.CORRECT, base="softmax#1/1"))
    with resume(home, SESSION) as recorder:
        recorder.record(ev.EngineStarted(host="node", pid=3, resumed=True))
        await story.play(recorder, story.exam("softmax#2/2", Verdict.CORRECT))
        recorder.record(ev.SessionFinished())
        await recorder.finish()
    record_at_rest(home, SESSION, ev.DecisionMade(attempt="softmax#2/2", accepted=True, by="ada"))


def branches(home: Home) -> str:
    """Return all branches of the session with their commits."""
    return git(home.store, "for-each-ref", f"refs/heads/{SESSION}")


async def test_rebuilt_session_has_the_same_commits(home: Home) -> None:
    await played(home)
    before = branches(home)
    assert int(git(home.store, "rev-list", "--count", f"{SESSION}/_journal")) > 5
    events = journal_of(home, SESSION).events
    shutil.rmtree(home.store)
    with take_up(home, SESSION) as recorder:
        recorder.now(recorder.put_down())
    assert branches(home) == before
    assert journal_of(home, SESSION).events == events, "nothing was committed under another id"
    assert home.files(SESSION).stored
    assert_sound(home.store)


async def test_session_that_lost_its_pack_can_still_be_pushed_where_it_was_pushed_before(home: Home) -> None:
    await played(home)
    remote = home.root / "remote.git"
    git(home.root, "init", "--quiet", "--bare", str(remote))
    push_sessions(home, str(remote), on_progress=lambda _line: None)
    shutil.rmtree(home.store / "objects")
    (home.store / "objects").mkdir()
    for repair in repairs(home):
        assert repair.act is not None
        repair.act()
    record_at_rest(home, SESSION, ev.DecisionUndone(attempt="softmax#2/2", by="ada"))
    push_sessions(home, str(remote), on_progress=lambda _line: None)
    assert git(remote, "rev-parse", f"{SESSION}/_journal") == git(
        home.store, "rev-parse", f"{SESSION}/_journal"
    )


async def test_journal_of_an_older_version_gives_the_same_commits(home: Home) -> None:
    """It does not say up to which event a commit was made."""
    await played(home)
    before = branches(home)
    with take_up(home, SESSION):
        pass
    journal = home.files(SESSION).journal
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line.replace(b',"read_seq":', b',"unknown":') for line in lines))
    shutil.rmtree(home.store)
    with take_up(home, SESSION) as recorder:
        recorder.now(recorder.put_down())
    attempts = [line for line in before.splitlines() if "_journal" not in line]
    assert [line for line in branches(home).splitlines() if "_journal" not in line] == attempts
