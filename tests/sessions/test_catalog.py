"""Finding sessions, deciding about them afterwards, and taking them away."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sessions import (
    Home,
    Recorder,
    Store,
    decide,
    delete_session,
    find_session,
    fold,
    journal_of,
    list_sessions,
    undo,
)
from sessions import events as ev
from sessions.errors import AmbiguousSession, NoSuchAttempt, NoSuchSession, NotDecidable, SessionBusy
from sessions.reconcile import take_up
from tests.sessions import story
from tests.sessions.story import SESSION, assert_sound, git

OTHER = "20250102-030406-geak-ffff"


def begin(home: Home, name: str = OTHER) -> Recorder:
    return Recorder.begin(home, story.started(name))


def test_an_empty_home_lists_nothing(home: Home) -> None:
    assert list_sessions(home) == []
    with pytest.raises(NoSuchSession, match="wavedeck sessions"):
        find_session(home, "2025")
    assert not home.root.exists()


async def test_where_sessions_stand(told_home: Home) -> None:
    with begin(told_home) as recorder:
        await story.play(recorder, story.instance(1))
        running, finished = list_sessions(told_home)
        assert (running.name, running.state, running.attempts) == (OTHER, "running", 3)
        assert (finished.name, finished.state) == (SESSION, "finished")
    for info in (list_sessions(told_home)[0], finished):
        assert (info.method, info.model, info.tasks) == ("geak", "recorded:starter", ("starter/softmax",))
        assert info.solved == ("starter/softmax",)
        assert info.best == {"starter/softmax": "softmax#1/3"}
        assert info.speedups == {"starter/softmax": 1.42}
        assert info.started is not None
    assert (finished.attempts, finished.cost_usd, finished.input_tokens) == (6, 0.5, 800)
    assert list_sessions(told_home)[0].state == "crashed"
    with Recorder.begin(told_home, story.started("20250102-030407-geak-0000")) as recorder:
        recorder.record(ev.EngineStopped(reason="asked"))
        await recorder.flush()
    assert list_sessions(told_home)[0].state == "stopped"
    shutil.rmtree(told_home.live("20250102-030407-geak-0000").folder)
    assert list_sessions(told_home)[0].state == "stopped"


def test_a_damaged_session_is_listed_with_what_is_left(told_home: Home) -> None:
    live = told_home.live(OTHER)
    live.folder.mkdir()
    live.journal.write_bytes(b"garbage\n\0\0\0")
    assert [info.name for info in list_sessions(told_home)] == [OTHER, SESSION]


def test_any_unique_prefix_finds_a_session(told_home: Home) -> None:
    begin(told_home).close()
    assert find_session(told_home, SESSION) == SESSION
    assert find_session(told_home, "20250102-030405") == SESSION
    with pytest.raises(AmbiguousSession, match="fits 2 sessions"):
        find_session(told_home, "2025")
    with pytest.raises(NoSuchSession, match=f"nearest: .*{SESSION}"):
        find_session(told_home, "20250102-030405-gaek")
    with pytest.raises(NoSuchSession):
        find_session(told_home, "")


def test_events_are_found_wherever_they_are(told_home: Home) -> None:
    begin(told_home).close()
    assert len(journal_of(told_home, OTHER).events) == 1
    assert fold(journal_of(told_home, SESSION).events).finished
    with pytest.raises(NoSuchSession):
        journal_of(told_home, "nothing")


def test_decisions_about_a_finished_session_are_events_in_its_journal(told_home: Home) -> None:
    before = journal_of(told_home, SESSION).events
    event = decide(told_home, SESSION, "softmax#1/3", accepted=True, why="fast\nand right", by="ada")
    after = journal_of(told_home, SESSION).events
    assert after == [*before, event]
    assert event.seq == len(before) + 1
    with Store.read_only(told_home.store) as store:
        assert store.accepted()["starter/softmax"].why == "fast\nand right"
    assert list_sessions(told_home)[0].accepted == ("softmax#1/3",)
    assert list_sessions(told_home)[0].state == "finished"
    undo(told_home, SESSION, "softmax#1/3", by="ada")
    with Store.read_only(told_home.store) as store:
        assert store.accepted() == {}
    assert fold(journal_of(told_home, SESSION).events).attempt("softmax#1/3").decision is None
    assert told_home.live_sessions() == []
    assert_sound(told_home.store)


async def test_decisions_about_a_stopped_session_are_there_when_it_goes_on(home: Home) -> None:
    with begin(home) as recorder:
        await story.play(recorder, [*story.instance(1), ev.EngineStopped(reason="asked")])
    decide(home, OTHER, "softmax#1/2", accepted=False, why="too clever")
    state = fold(journal_of(home, OTHER).events)
    decision = state.attempt("softmax#1/2").decision
    assert decision is not None
    assert (decision.accepted, decision.why) == (False, "too clever")
    assert list_sessions(home)[0].state == "stopped"


async def test_decisions_that_cannot_be(told_home: Home) -> None:
    before = git(told_home.store, "for-each-ref")
    with pytest.raises(NoSuchAttempt, match=r"nearest: softmax#[12]/3"):
        decide(told_home, SESSION, "softmax#3/3", accepted=True)
    with pytest.raises(NotDecidable):
        undo(told_home, SESSION, "softmax#1/3")
    with pytest.raises(NoSuchSession):
        decide(told_home, "nothing", "softmax#1/3", accepted=True)
    assert git(told_home.store, "for-each-ref") == before
    assert told_home.live_sessions() == []
    with begin(told_home) as recorder:
        await story.play(recorder, story.instance(1))
        with pytest.raises(SessionBusy):
            decide(told_home, OTHER, "softmax#1/3", accepted=True)


def test_deleting_keeps_what_people_accepted(told_home: Home) -> None:
    decide(told_home, SESSION, "softmax#1/3", accepted=True)
    begin(told_home).close()
    delete_session(told_home, SESSION)
    assert [info.name for info in list_sessions(told_home)] == [OTHER]
    assert git(told_home.store, "for-each-ref", f"refs/heads/{SESSION}") == ""
    assert git(told_home.store, "show", "accepted:starter/softmax/kernel.py").endswith("# softmax#1/3\n")
    delete_session(told_home, OTHER)
    assert list_sessions(told_home) == []
    assert list((told_home.root / "live").iterdir()) == []
    with pytest.raises(NoSuchSession):
        delete_session(told_home, SESSION)
    assert_sound(told_home.store)


def test_a_running_session_is_not_deleted(home: Home) -> None:
    with begin(home), pytest.raises(SessionBusy):
        delete_session(home, OTHER)
    assert find_session(home, OTHER) == OTHER


def test_the_cockpits_part_of_the_memory_loads_no_git() -> None:
    code = "import sessions, sessions.events, sessions.state, sessions.journal, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"git", "gitdb", "torch", "triton", "textual"} & set(done.stdout.split())


def test_every_public_name_is_there(tmp_path: Path) -> None:
    import sessions

    for name in sessions.__all__:
        assert getattr(sessions, name) is not None
    for name in ("decide", "undo", "resume"):
        assert callable(getattr(sessions, name))


async def test_a_session_taken_up_from_the_store_is_listed_as_it_was_started(told_home: Home) -> None:
    with begin(told_home) as recorder:
        await recorder.flush()
    shutil.rmtree(told_home.live(OTHER).folder)
    take_up(told_home, OTHER).close()
    listed = list_sessions(told_home)[0]
    assert told_home.live(OTHER).journal.exists()
    assert (listed.name, listed.method, listed.tasks) == (OTHER, "geak", ("starter/softmax",))
