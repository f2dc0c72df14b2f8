"""Objects that the store lost: they are written again from the journal, and concern no other session."""

from __future__ import annotations

import os
import shutil

import pytest

from harness import Verdict
from sessions import Home, Recorder, fold, journal_of, list_sessions, resume
from sessions import events as ev
from sessions.errors import NothingToResume, StoreBroken
from sessions.store.store import Store
from tests.support.sessions import story
from tests.support.sessions.story import SESSION, assert_sound, git, lose

OTHER = "20250102-030406-geak-ffff"
FIRST_ATTEMPT = f"{SESSION}/starter/softmax/1~2"


LOST = pytest.mark.parametrize(
    "name",
    [
        f"{FIRST_ATTEMPT}^{{tree}}", f"{FIRST_ATTEMPT}:evaluation.json", f"{SESSION}/starter/softmax/1",
        f"{FIRST_ATTEMPT}:prompt.md", f"{SESSION}/_journal^{{tree}}", f"{SESSION}/_journal:journal/00000001.jsonl",
    ],
    ids=lambda name: name.removeprefix(SESSION),
)  # fmt: skip


@LOST
async def test_resume_writes_lost_objects_again(stopped: Home, name: str) -> None:
    tip = git(stopped.store, "rev-parse", f"{SESSION}/starter/softmax/1")
    lose(stopped, name)
    with resume(stopped, SESSION) as recorder:
        assert_sound(stopped.store)
        assert git(stopped.store, "rev-parse", f"{SESSION}/starter/softmax/1") == tip
        recorder.record(ev.SessionFinished())
        await recorder.finish()
    assert stopped.files(SESSION).stored
    assert fold(journal_of(stopped, SESSION).events).finished
    assert_sound(stopped.store)


async def test_branch_that_lost_its_event_and_an_object_is_committed_again(home: Home) -> None:
    branch = f"{SESSION}/starter/softmax/1"
    with Recorder.begin(home, story.started()) as recorder:
        await story.play(recorder, story.attempt("softmax#1/1", Verdict.CORRECT))
    journal = home.files(SESSION).journal
    *lines, last = journal.read_bytes().splitlines(keepends=True)
    assert b"attempt_committed" in last
    journal.write_bytes(b"".join(lines))
    tip = git(home.store, "rev-parse", branch)
    lose(home, f"{branch}:kernel.py")
    with resume(home, SESSION):
        assert git(home.store, "rev-parse", branch) == tip
        assert_sound(home.store)


async def test_lost_objects_of_one_session_do_not_keep_another_from_the_store(stopped: Home) -> None:
    lose(stopped, f"{FIRST_ATTEMPT}:evaluation.json")
    lose(stopped, f"{SESSION}/_journal^{{tree}}")
    with Recorder.begin(stopped, story.started(OTHER)) as recorder:
        recorder.record(ev.SessionFinished())
        await recorder.finish()
    assert [files.session for files in stopped.session_folders() if files.stored] == [OTHER]
    state = fold(journal_of(stopped, OTHER).events)
    assert state.finished
    [(level, words)] = state.notices
    assert level == "warning"
    assert "cannot be packed" in words
    assert "wavedeck doctor --repair" in words


async def test_running_session_writes_again_what_another_program_removed(stopped: Home) -> None:
    with resume(stopped, SESSION) as recorder:
        lose(stopped, f"{SESSION}/_journal^{{tree}}")
        await story.play(recorder, [ev.EngineStarted(host="node", pid=2, resumed=True), *story.instance(2)])
        await recorder.flush()
        lose(stopped, f"{FIRST_ATTEMPT}:evaluation.json")
        recorder.record(ev.SessionFinished())
        await recorder.finish()
    assert stopped.files(SESSION).stored
    assert fold(journal_of(stopped, SESSION).events).finished
    assert_sound(stopped.store)


async def test_session_that_the_store_refuses_is_not_listed_as_finished(stopped: Home) -> None:
    branch = stopped.store / "refs" / "heads" / SESSION / "_journal"
    with resume(stopped, SESSION) as recorder:
        branch.unlink()
        (branch / "in the way").mkdir(parents=True)
        recorder.record(ev.SessionFinished())
        with pytest.raises(StoreBroken, match="cannot be written"):
            await recorder.finish()
    [info] = list_sessions(stopped)
    assert info.state == "not stored"
    shutil.rmtree(branch)
    with pytest.raises(NothingToResume):
        resume(stopped, SESSION)
    [info] = list_sessions(stopped)
    assert info.state == "finished"


def test_attempts_that_get_other_ids_take_their_successors_along(stopped: Home) -> None:
    """The first attempt was committed before its last call ended, so it is committed again with that call."""
    live = stopped.files(SESSION)
    lose(stopped, f"{FIRST_ATTEMPT}^{{tree}}")
    lines = live.journal.read_bytes().splitlines(keepends=True)
    assert b"attempt_judged" in b"".join(lines)
    changed = [line.replace(b"output 0 is wrong", b"output 1 is wrong") for line in lines]
    assert changed != lines
    live.journal.write_bytes(b"".join(changed))
    with resume(stopped, SESSION) as recorder:
        assert recorder.store.session_is_complete(SESSION)
        recorder.record(ev.SessionFinished())
        recorder.now(recorder.finish())
    assert_sound(stopped.store)


def test_damaged_object_is_an_error_and_the_next_object_is_read(stopped: Home) -> None:
    path = stopped.store / "objects"
    sha = git(stopped.store, "rev-parse", f"{SESSION}/_journal:session.json").strip()
    damaged = path / sha[:2] / sha[2:]
    damaged.chmod(0o600)
    damaged.write_bytes(b"no object")
    with Store.read_only(stopped.store) as store:
        assert not store.repository.has(sha)
        with pytest.raises(StoreBroken, match="doctor --repair"):
            store.repository.read_file(sha)
        assert story.stored_events(store, SESSION)


def test_gc_keeps_an_old_object_that_a_session_needs_again(home: Home) -> None:
    home.ensure()
    with Store.of(home) as store:
        story.commit(store, "b/1", {"f": b"1"})
        file = store.repository.write_files({"": b"new"})[""]
        tree = store.repository.write_tree({"kernel.py": file})
        commit = store.repository.write_commit(tree, parents=[], message="m", wall=1.0)
        for sha in (file, tree, commit):
            os.utime(home.store / "objects" / sha[:2] / sha[2:], (1.0, 1.0))
        assert store.repository.write_commit(tree, parents=[], message="m", wall=1.0) == commit
        store.repository.write_tree(store.repository.write_files({"kernel.py": b"new"}))
        git(home.store, "gc", "--quiet")
        assert all(store.repository.has(sha) for sha in (file, tree, commit))
