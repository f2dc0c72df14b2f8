"""Resume after damage by a crash, a full disk or a person: git is repaired from the journal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Verdict
from sessions import Home, Recorder, Store, fold, journal_of, read_journal, resume
from sessions import events as ev
from sessions.errors import JournalDamaged, NoSuchSession
from sessions.store.reconcile import record_at_rest, take_up
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions import story
from tests.support.sessions.story import SESSION, assert_sound, git

BRANCH = f"refs/heads/{SESSION}/starter/softmax/1"
JOURNAL_BRANCH = f"refs/heads/{SESSION}/_journal"


def commits(home: Home) -> list[str | None]:
    return [attempt.commit for attempt in fold(journal_of(home, SESSION).events).attempts()]


def test_resume_of_an_undamaged_session_changes_nothing(stopped: Home) -> None:
    before = stopped.files(SESSION).journal.read_bytes()
    refs = git(stopped.store, "for-each-ref")
    resume(stopped, SESSION).close()
    assert stopped.files(SESSION).journal.read_bytes() == before
    assert git(stopped.store, "for-each-ref") == refs


def without_last_commit_event(home: Home) -> None:
    """State after a kill between the update of the git ref and its event."""
    journal = home.files(SESSION).journal
    lines = journal.read_bytes().splitlines(keepends=True)
    last = max(index for index, line in enumerate(lines) if b"attempt_committed" in line)
    journal.write_bytes(b"".join(lines[:last]))
    git(home.store, "update-ref", "-d", JOURNAL_BRANCH)


def journal_branch_has_different_events(home: Home) -> None:
    with Store.of(home) as store:
        files = {"journal/00000001.jsonl": b'{"type":"notice"}\n'}
        store.extend_journal(SESSION, files, message="another", wall=0.0)


def stale_locks(home: Home) -> None:
    for name in ("packed-refs.lock", f"{BRANCH}.lock", "HEAD.lock"):
        (home.store / name).write_text("")
        os.utime(home.store / name, (1.0, 1.0))


HARMS: dict[str, Callable[[Home], object]] = {
    "event of the last commit lost": without_last_commit_event,
    "branch behind": lambda home: git(home.store, "update-ref", BRANCH, f"{BRANCH}~1"),
    "branch gone": lambda home: git(home.store, "update-ref", "-d", BRANCH),
    "branch elsewhere": lambda home: git(home.store, "update-ref", BRANCH, JOURNAL_BRANCH),
    "store gone": lambda home: shutil.rmtree(home.store),
    "journal branch gone": lambda home: git(home.store, "update-ref", "-d", JOURNAL_BRANCH),
    "different events": journal_branch_has_different_events,
    "stale locks": stale_locks,
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
async def test_resume_repairs_git(stopped: Home, harm: Callable[[Home], object]) -> None:
    ids = commits(stopped)
    harm(stopped)
    with resume(stopped, SESSION) as recorder:
        assert commits(stopped) == ids, "equal state gives equal commits"
        assert git(stopped.store, "rev-parse", BRANCH).strip() == ids[-1]
        await story.play(recorder, [ev.EngineStarted(host="node", pid=2, resumed=True), *story.instance(2)])
        recorder.record(ev.SessionFinished())
        await recorder.finish()
    assert list(stopped.store.rglob("*.lock")) == []
    assert_sound(stopped.store)
    assert fold(journal_of(stopped, SESSION).events).finished
    assert None not in commits(stopped)


async def test_resume_restores_events_from_git(stopped: Home) -> None:
    journal = stopped.files(SESSION).journal
    whole = journal.read_bytes()
    journal.write_bytes(whole[: len(whole) // 2])
    with resume(stopped, SESSION):
        assert journal.read_bytes().startswith(whole)
        assert len(list(journal.parent.glob("journal.torn-*"))) == 1


async def test_resume_commits_a_judged_attempt(home: Home) -> None:
    with Recorder.begin(home, story.started()) as recorder:
        for event in story.attempt("softmax#1/1", Verdict.CORRECT):
            recorder.record(event)
    with resume(home, SESSION) as recorder:
        commit = recorder.state.attempt("softmax#1/1").commit
        assert git(home.store, "rev-parse", BRANCH).strip() == commit
        assert recorder.state == fold(read_journal(recorder.files.journal).events)


async def test_resume_writes_missing_decisions_to_git_in_their_order(stopped: Home) -> None:
    def decide(*decisions: ev.Event) -> str:
        """Record decisions that do not reach git; return what a resume makes of them."""
        with resume(stopped, SESSION) as recorder:
            for decision in decisions:
                recorder.record(decision)
        with resume(stopped, SESSION) as recorder:
            accepted = recorder.store.accepted()
            return accepted["starter/softmax"].attempt if accepted else ""

    accept = [ev.DecisionMade(attempt=f"softmax#1/{number}", accepted=True, by="ada") for number in (2, 3)]
    assert decide(accept[1]) == "softmax#1/3"
    assert decide(ev.DecisionUndone(attempt="softmax#1/3", by="ada")) == ""
    assert decide(accept[1], accept[0]) == "softmax#1/2"


def test_missing_decision_does_not_replace_a_kernel_that_was_accepted_later(home: Home) -> None:
    accept = ev.DecisionMade(attempt="softmax#1/2", accepted=True, by="ada")
    stored.finished(home, stored.FIRST)
    with take_up(home, stored.FIRST) as recorder:
        recorder.record(accept)  # killed before it reached `accepted`
    stored.finished(home, stored.SECOND)
    record_at_rest(home, stored.SECOND, accept)
    with take_up(home, stored.FIRST) as recorder:
        assert recorder.store.accepted()["starter/softmax"].session == stored.SECOND
    record_at_rest(home, stored.SECOND, ev.DecisionUndone(attempt="softmax#1/2", by="ada"))
    with take_up(home, stored.FIRST) as recorder:
        assert recorder.store.accepted()["starter/softmax"].session == stored.FIRST


async def test_torn_last_line_gives_a_notice_and_is_kept(stopped: Home) -> None:
    with stopped.files(SESSION).journal.open("ab") as file:
        file.write(b'{"type":"attempt_jud')
    with resume(stopped, SESSION) as recorder:
        assert recorder.state.notices[-1][0] == "warning"
        assert "journal.torn-1" in recorder.state.notices[-1][1]
        recorder.record(ev.SessionFinished())
        await recorder.finish()
    assert (stopped.files(SESSION).folder / "journal.torn-1").read_bytes() == b'{"type":"attempt_jud'


def test_bad_line_in_the_middle_is_refused_and_the_lock_released(stopped: Home) -> None:
    live = stopped.files(SESSION)
    lines = live.journal.read_bytes().splitlines(keepends=True)
    live.journal.write_bytes(b"".join([*lines[:4], b"garbage\n", *lines[5:]]))
    with pytest.raises(JournalDamaged, match="line 5"):
        resume(stopped, SESSION)
    assert not live.running
    assert len(journal_of(stopped, SESSION).skipped) == 1


def test_session_in_a_cloned_store_can_be_resumed(stopped: Home, tmp_path: Path) -> None:
    """Same as a resume on another node from a clone."""
    git(tmp_path, "clone", "--quiet", "--mirror", str(stopped.store), "elsewhere")
    clone = Home(tmp_path / "other")
    clone.ensure()
    (tmp_path / "elsewhere").rename(clone.store)
    with resume(clone, SESSION) as recorder:
        assert recorder.state == fold(journal_of(stopped, SESSION).events)


def test_missing_or_empty_session_is_an_error(home: Home) -> None:
    with pytest.raises(NoSuchSession):
        resume(home, SESSION)
    assert home.session_folders() == []
    home.files(SESSION).folder.mkdir()
    home.files(SESSION).journal.touch()
    with pytest.raises(NoSuchSession):
        resume(home, SESSION)
    assert not home.files(SESSION).running
