"""Catalog of sessions: lists, search by prefix, decisions, deletion."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest

from sessions import (
    Home,
    Recorder,
    Store,
    delete_session,
    find_session,
    journal_of,
    list_sessions,
    record_at_rest,
)
from sessions import events as ev
from sessions.catalog import SessionList, find_sessions
from sessions.errors import AmbiguousSession, CommandRefused, NoSuchSession, SessionBusy
from sessions.journal.codec import encode
from sessions.store.reconcile import take_up
from sessions.store.repository import Repository
from tests.support.sessions import story
from tests.support.sessions.story import SESSION, assert_sound, git

OTHER = "20250102-030406-geak-ffff"


def begin(home: Home, name: str = OTHER) -> Recorder:
    return Recorder.begin(home, story.started(name))


async def test_list_shows_the_state_of_each_session(copied_home: Home) -> None:
    with begin(copied_home) as recorder:
        await story.play(recorder, story.instance(1))
        running, finished = list_sessions(copied_home)
        assert (running.name, running.state, running.attempts) == (OTHER, "running", 3)
        assert (finished.name, finished.state) == (SESSION, "finished")
    for info in (list_sessions(copied_home)[0], finished):
        assert (info.settings.method, info.settings.model, info.settings.tasks) == (
            "geak",
            "recorded:starter",
            ("starter/softmax",),
        )
        assert info.solved == ("starter/softmax",)
        assert info.best == {"starter/softmax": "softmax#1/3"}
        assert info.speeds["starter/softmax"].figure == "1.42x"
        assert info.started is not None
    assert (finished.attempts, finished.cost_usd, finished.input_tokens) == (6, 0.5, 800)
    assert list_sessions(copied_home)[0].state == "crashed"
    with Recorder.begin(copied_home, story.started("20250102-030407-geak-0000")) as recorder:
        recorder.record(ev.EngineStopped(reason="asked"))
        await recorder.flush()
    assert list_sessions(copied_home)[0].state == "stopped"
    shutil.rmtree(copied_home.files("20250102-030407-geak-0000").folder)
    assert list_sessions(copied_home)[0].state == "stopped"


def test_session_is_found_by_name_then_prefix_then_title_then_as_the_latest(home: Home) -> None:
    names = ["20250102-030405-geak-0001", "20250102-030406-geak-0002", "20250102-030407-geak-0003"]

    def titled(*titles: str) -> None:
        for name, title in zip(names, titles, strict=True):
            with Recorder.begin(home, story.started(name)) as recorder:
                recorder.record(ev.SessionTitled(title=title))

    titled("night", names[0], "night")
    assert find_session(home, names[0]) == names[0], "a name comes before a title"
    assert find_session(home, "latest") == names[2]
    with pytest.raises(AmbiguousSession, match="fits 2 names"):
        find_session(home, "night")
    shutil.rmtree(home.files(names[2]).folder)
    assert find_session(home, "night") == names[0]
    for name in names[:2]:
        shutil.rmtree(home.files(name).folder)
    titled("latest", "20250102-030407", "2025")
    assert find_session(home, "20250102-030407") == names[2], "a prefix comes before a title"
    assert find_session(home, "latest") == names[0], "a title comes before the word"
    assert find_session(home, "2025") == names[2], "a title comes before an ambiguous prefix"


def test_decision_about_a_finished_session_is_an_event_in_its_journal(copied_home: Home) -> None:
    before = journal_of(copied_home, SESSION).events
    decision = ev.DecisionMade(attempt="softmax#1/3", accepted=True, why="fast\nand right", by="ada")
    event = record_at_rest(copied_home, SESSION, decision)
    assert journal_of(copied_home, SESSION).events == [*before, event]
    with Store.read_only(copied_home.store) as store:
        assert store.accepted()["starter/softmax"].why == "fast\nand right"
    assert copied_home.files(SESSION).stored
    assert_sound(copied_home.store)


async def test_impossible_decision_is_refused_without_a_change(
    copied_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions.store.reconcile.LOCK_WAIT_S", 0.05)
    before = git(copied_home.store, "for-each-ref")
    with pytest.raises(CommandRefused, match=r"nearest: softmax#[12]/3"):
        record_at_rest(copied_home, SESSION, ev.DecisionMade(attempt="softmax#3/3", accepted=True))
    with pytest.raises(NoSuchSession):
        record_at_rest(copied_home, "nothing", ev.DecisionMade(attempt="softmax#1/3", accepted=True))
    assert git(copied_home.store, "for-each-ref") == before
    assert copied_home.files(SESSION).stored
    with begin(copied_home) as recorder:
        await story.play(recorder, story.instance(1))
        with pytest.raises(SessionBusy):
            record_at_rest(copied_home, OTHER, ev.DecisionMade(attempt="softmax#1/3", accepted=True))


def test_deletion_keeps_accepted_kernels(copied_home: Home) -> None:
    record_at_rest(copied_home, SESSION, ev.DecisionMade(attempt="softmax#1/3", accepted=True))
    begin(copied_home).close()
    delete_session(copied_home, SESSION)
    assert [info.name for info in list_sessions(copied_home)] == [OTHER]
    assert git(copied_home.store, "for-each-ref", f"refs/heads/{SESSION}") == ""
    assert git(copied_home.store, "show", "accepted:starter/softmax/kernel.py").endswith("# softmax#1/3\n")
    delete_session(copied_home, OTHER)
    assert list_sessions(copied_home) == []
    assert copied_home.session_folders() == []
    with pytest.raises(NoSuchSession):
        delete_session(copied_home, SESSION)
    assert_sound(copied_home.store)


def test_killed_deletion_can_be_repeated(copied_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = Repository.delete_refs

    def killed_after_the_first(repository: Repository, refs: Sequence[str]) -> None:
        delete(repository, refs[:1])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Repository, "delete_refs", killed_after_the_first)
        with pytest.raises(KeyboardInterrupt):
            delete_session(copied_home, SESSION)
    assert find_session(copied_home, SESSION) == SESSION
    delete_session(copied_home, SESSION)
    assert git(copied_home.store, "for-each-ref", f"refs/heads/{SESSION}") == ""


def test_session_is_not_opened_while_it_is_deleted(
    copied_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = Store.delete_session

    def opened_meanwhile(store: Store, session: str) -> None:
        with pytest.raises(SessionBusy):
            take_up(copied_home, session)
        delete(store, session)

    monkeypatch.setattr("sessions.store.reconcile.LOCK_WAIT_S", 0.1)
    monkeypatch.setattr(Store, "delete_session", opened_meanwhile)
    delete_session(copied_home, SESSION)
    assert not copied_home.files(SESSION).folder.exists()


def test_list_that_is_read_again_equals_a_fresh_list(copied_home: Home) -> None:
    begin(copied_home)
    sessions = SessionList(copied_home)
    assert sessions.read() == list_sessions(copied_home)
    before = sessions.mark()
    assert sessions.mark() == before
    added = ev.SessionTitled(seq=2, wall=1.0, mono=1.0, title="tiles", by="ada")
    with copied_home.files(OTHER).journal.open("ab") as file:
        file.write(encode(added) + b"\n" + b'{"type":"session_ti')
    assert sessions.mark() != before
    again = sessions.read()
    assert next(info for info in again if info.name == OTHER).title == "tiles"
    assert again == list_sessions(copied_home)


def test_study_names_the_newest_session_of_each_cell_in_order(home: Home) -> None:
    names = [f"2026010{day}-030405-geak-000{day}" for day in range(1, 5)]
    for name, cell in zip(names, (2, 1, 2, 10), strict=True):
        started = story.started(name, series=f"tables-3f2a91/{cell}")
        Recorder.begin(home, started).close()
    assert find_sessions(home, "tables") == [names[1], names[2], names[3]]
    assert find_sessions(home, names[0]) == [names[0]]
    with pytest.raises(NoSuchSession, match="no session or study 'tablet'"):
        find_sessions(home, "tablet")
