"""Recorder: state, commits, decisions and locks of a running session."""

from __future__ import annotations

import asyncio

import pytest

from harness import Verdict
from sessions import Home, Store, fold, journal_of, resume
from sessions import events as ev
from sessions.errors import JournalNotWritable, SessionBusy, SessionExists
from tests.support.sessions import story
from tests.support.sessions.story import SESSION, assert_sound, git


async def test_finished_session_is_in_git_and_keeps_its_journal_and_its_summary(finished_home: Home) -> None:
    files = finished_home.files(SESSION)
    assert {path.name for path in files.folder.iterdir()} == {"journal.jsonl.gz", "summary.msgpack", "lock"}
    state = fold(journal_of(finished_home, SESSION).events)
    for attempt in state.attempts():
        assert git(finished_home.store, "cat-file", "-t", attempt.commit) == "commit\n"
    assert "count: 0" in git(finished_home.store, "count-objects", "-v").splitlines()


async def test_git_contains_the_session_after_its_first_attempt(home: Home) -> None:
    with story.begin(home) as recorder:
        for event in story.after_start():
            await story.play(recorder, [event])
            if isinstance(event, ev.AttemptJudged) and event.evaluation.verdict is Verdict.CORRECT:
                break
        with Store.read_only(home.store) as store:
            assert story.stored_events(store, SESSION)[0] == journal_of(home, SESSION).events[0]


async def test_second_commit_of_an_attempt_changes_nothing(home: Home) -> None:
    with story.begin(home) as recorder:
        await story.play(recorder, story.attempt("softmax#1/1", Verdict.CORRECT))
        before = recorder.state.last_seq
        first = recorder.state.attempt("softmax#1/1").commit
        assert await recorder.commit_attempt("softmax#1/1") == first
        assert recorder.state.last_seq == before


async def test_late_reflection_is_added_to_the_commit_until_a_child_exists(home: Home) -> None:
    with story.begin(home) as recorder:
        events = list(story.attempt("softmax#1/1", Verdict.WRONG))
        index = next(n for n, event in enumerate(events) if isinstance(event, ev.AttemptJudged))
        await story.play(recorder, events[: index + 1])
        early = await recorder.commit_attempt("softmax#1/1")
        await story.play(recorder, events[index + 1 :])
        late = recorder.state.attempt("softmax#1/1").commit
        assert late not in (None, early)
        branch = f"{SESSION}/starter/softmax/1"
        assert git(home.store, "rev-list", "--count", branch).strip() == "1"
        assert git(home.store, "show", f"{branch}:calls.jsonl").count("\n") == 2
        await story.play(recorder, story.attempt("softmax#1/2", Verdict.CORRECT, base="softmax#1/1"))
        await story.play(recorder, story.call("softmax#1/1", ev.Role.REFLECTOR, "Once more.", n=2))
        assert recorder.state.attempt("softmax#1/1").commit == late


async def test_commit_parents_are_the_base_and_the_previous_attempt(home: Home) -> None:
    with story.begin(home) as recorder:
        await story.play(recorder, story.attempt("softmax#1/1", Verdict.CORRECT))
        await story.play(recorder, story.attempt("softmax#1/2", Verdict.CORRECT))
        await story.play(recorder, story.attempt("softmax#1/3", Verdict.CORRECT, base="softmax#1/1"))
        await story.play(recorder, story.attempt("softmax#2/1", Verdict.CORRECT, base="softmax#1/3"))
        commits = {attempt.attempt: attempt.commit for attempt in recorder.state.attempts()}
        parents = {
            name: git(home.store, "log", "-1", "--format=%P", str(commit)).split()
            for name, commit in commits.items()
        }
        assert parents == {
            "softmax#1/1": [],
            "softmax#1/2": [commits["softmax#1/1"]],
            "softmax#1/3": [commits["softmax#1/1"], commits["softmax#1/2"]],
            "softmax#2/1": [commits["softmax#1/3"]],
        }
        log = git(home.store, "log", "--format=%s", f"{SESSION}/starter/softmax/1")
        assert log.split()[::3] == ["softmax#1/3", "softmax#1/2", "softmax#1/1"], "no attempt is missing"


async def test_parallel_instances_are_recorded_completely(home: Home) -> None:
    with story.begin(home) as recorder:
        async with asyncio.TaskGroup() as group:
            for number in range(1, 4):
                group.create_task(story.play(recorder, story.instance(number)), name=f"instance {number}")
        assert recorder.uncommitted() == []
        journal = journal_of(home, SESSION)
        assert [event.seq for event in journal.events] == list(range(1, len(journal.events) + 1))
        assert recorder.state == fold(journal.events)
        assert len(recorder.state.attempts()) == 9
    assert_sound(home.store)


async def test_cancelled_commit_is_made_at_the_end(home: Home) -> None:
    recorder = story.begin(home)
    for event in story.attempt("softmax#1/1", Verdict.CORRECT):
        recorder.record(event)
    task = asyncio.create_task(recorder.commit_attempt("softmax#1/1"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    recorder.record(ev.SessionFinished())
    await recorder.finish()
    state = fold(journal_of(home, SESSION).events)
    assert state.attempt("softmax#1/1").commit is not None
    assert_sound(home.store)


async def test_branch_has_the_kernel_that_was_accepted_last(home: Home) -> None:
    """Also if all decisions are made in one second, and if the first attempt has no commit yet."""
    with story.begin(home) as recorder:
        for event in story.instance(1):
            recorder.record(event)
        await recorder.commit_attempt("softmax#1/3")
        accept_2, accept_3 = (ev.DecisionMade(attempt=f"softmax#1/{n}", accepted=True) for n in (2, 3))
        async with asyncio.TaskGroup() as group:
            group.create_task(recorder.follow(accept_2))
            group.create_task(recorder.follow(accept_3))
        assert recorder.store.accepted()["starter/softmax"].attempt == "softmax#1/3"
        await recorder.follow(accept_2)
        assert recorder.store.accepted()["starter/softmax"].attempt == "softmax#1/2"


async def test_session_has_only_one_recorder(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("recorder", "reconcile"):
        monkeypatch.setattr(f"sessions.store.{module}.LOCK_WAIT_S", 0.05)
    with story.begin(home) as recorder:
        with pytest.raises(SessionBusy, match=SESSION):
            story.begin(home)
        with pytest.raises(SessionBusy, match="wavedeck attach"):
            resume(home, SESSION)
    with pytest.raises(SessionExists, match="wavedeck resume"):
        story.begin(home)
    with pytest.raises(JournalNotWritable):
        recorder.record(ev.Notice(level="info", message="too late"))
