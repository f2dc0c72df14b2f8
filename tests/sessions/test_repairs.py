"""Repairs of a damaged store: each says what it will do, deletes nothing, and leaves a sound store."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness import Verdict
from sessions import Home, fold, journal_of, list_sessions, record_at_rest
from sessions import events as ev
from sessions.errors import JournalNotReadable, StoreBroken
from sessions.files import locked
from sessions.repairs import Repair, repairs
from sessions.store.sharing import fetch_sessions
from sessions.store.store import Store
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.story import assert_sound, git, loosen

FINISHED, STOPPED = stored.SECOND, stored.FIRST


@pytest.fixture(scope="module")
def made_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Home with a finished session with an accepted kernel, and a stopped one."""
    home = Home(tmp_path_factory.mktemp("full") / "home")
    stored.stopped(home, STOPPED, verdict=Verdict.CRASH)
    stored.finished(home, FINISHED)
    record_at_rest(
        home, FINISHED, ev.DecisionMade(attempt="softmax#1/2", accepted=True, why="fast", by="ada")
    )
    git(home.store, "config", "unpack.unpackLimit", "1000")
    return home


@pytest.fixture
def full(made_home: Home, home: Home) -> Home:
    """A copy of it for one test."""
    shutil.copytree(made_home.root, home.root)
    return home


def object_of(home: Home, name: str) -> Path:
    loosen(home.store)
    sha = git(home.store, "rev-parse", name).strip()
    return home.store / "objects" / sha[:2] / sha[2:]


def write_branch(home: Home, branch: str, content: bytes) -> None:
    path = home.store / "refs" / "heads" / branch
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def folder_as_head(home: Home) -> None:
    (home.store / "HEAD").unlink()
    (home.store / "HEAD" / "inner").mkdir(parents=True)


def no_refs(home: Home) -> None:
    """Damage of a copy tool that leaves out empty folders; all refs are packed."""
    git(home.store, "pack-refs", "--all")
    shutil.rmtree(home.store / "refs")


def cut_packed_refs(home: Home) -> None:
    git(home.store, "pack-refs", "--all")
    path = home.store / "packed-refs"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + lines[-2][:50])


def cut(path: Path, lost: int | None = None) -> None:
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[: -lost if lost else 0])


def index_of(home: Home) -> Path:
    return next((home.store / "objects" / "pack").glob("*.idx"))


ATTEMPT = f"{FINISHED}/starter/softmax/1"
HARMS: dict[str, Callable[[Home], object]] = {
    "no HEAD, no config": lambda home: [(home.store / name).unlink() for name in ("HEAD", "config")],
    "empty HEAD": lambda home: cut(home.store / "HEAD"),
    "folder as HEAD": folder_as_head,
    "no refs": no_refs,
    "journal ref, stopped": lambda home: write_branch(home, f"{STOPPED}/_journal", b"garbage\n"),
    "journal ref, finished": lambda home: write_branch(home, f"{FINISHED}/_journal", b"\0\0\0\0"),
    "attempt ref": lambda home: write_branch(home, ATTEMPT, b""),
    "accepted ref": lambda home: write_branch(home, "accepted", b"garbage"),
    "accepted tree": lambda home: object_of(home, "accepted^{tree}").unlink(),
    "packed refs": cut_packed_refs,
    "no pack index": lambda home: index_of(home).unlink(),
    "cut pack index": lambda home: cut(index_of(home), 30),
    "lost tree": lambda home: object_of(home, f"{ATTEMPT}~1^{{tree}}").unlink(),
    "empty object": lambda home: cut(object_of(home, f"{ATTEMPT}:evaluation.json")),
    "lost file, stopped": lambda home: object_of(home, f"{STOPPED}/starter/softmax/1:kernel.py").unlink(),
    "store": lambda home: shutil.rmtree(home.store),
    "cut journal": lambda home: cut(home.files(FINISHED).stored_journal, 20),
    "empty journal": lambda home: cut(home.files(FINISHED).stored_journal),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_damaged_store_is_repaired_without_a_loss(full: Home, harm: Callable[[Home], object]) -> None:
    events = {name: journal_of(full, name).events for name in (FINISHED, STOPPED)}
    with Store.read_only(full.store) as store:
        accepted = store.accepted()
    branches = git(full.store, "for-each-ref", f"refs/heads/{FINISHED}")
    harm(full)
    assert repair_all(full) > 0
    assert_sound(full.store)
    assert repair_all(full) == 0, "the second time nothing is left"
    for name, before in events.items():
        after = journal_of(full, name).events
        assert after[: len(before)] == before
        assert fold(after).finished is fold(before).finished
    assert [(info.name, info.state) for info in list_sessions(full)] == [
        (FINISHED, "finished"),
        (STOPPED, "stopped"),
    ]
    with Store.read_only(full.store) as store:
        assert store.accepted() == accepted
    assert git(full.store, "for-each-ref", f"refs/heads/{FINISHED}") == branches


def repair_all(home: Home) -> int:
    """Do each repair; return their number."""
    done = _done(home)
    assert all(repair.act and repair.damage and repair.remedy for repair in done), done
    return len(done)


def _done(home: Home) -> list[Repair]:
    """Do each repair that is possible; return all."""
    done = []
    for repair in repairs(home):
        if repair.act is not None:
            repair.act()
        done.append(repair)
    return done


def test_repaired_branch_has_no_decision_of_another_home(full: Home, tmp_path: Path) -> None:
    bob = Home(tmp_path / "bob")
    accept = ev.DecisionMade(attempt="softmax#1/2", accepted=True)
    record_at_rest(bob, stored.finished(bob, "20260102-050607-geak-cccc"), replace(accept, by="bob"))
    record_at_rest(full, FINISHED, replace(accept, by="alice"))
    fetch_sessions(bob, str(full.store), on_progress=lambda _line: None)
    HARMS["accepted tree"](bob)
    assert repair_all(bob) > 0
    assert_sound(bob.store)
    with Store.read_only(bob.store) as store:
        assert [kernel.by for kernel in store.accepted().values()] == ["bob"]


def test_session_of_which_only_git_has_a_part_is_named_and_stays_in_the_damaged_store(full: Home) -> None:
    full.files(FINISHED).stored_journal.unlink()
    object_of(full, f"{FINISHED}/_journal:journal/00000001.jsonl").unlink()
    before = git(full.store, "for-each-ref", f"refs/heads/{FINISHED}")
    renewal, lost = _done(full)
    assert renewal.act is not None
    assert lost.act is None
    assert f"the journal of {FINISHED} is damaged" in lost.damage
    assert f"wavedeck sessions fetch COPY/store.git {FINISHED}" in lost.remedy
    assert git(full.store / "damaged", "for-each-ref", f"refs/heads/{FINISHED}") == before
    assert [info.name for info in list_sessions(full)] == [STOPPED]


@pytest.mark.parametrize("loss", ["description", "no pack index"])
def test_session_that_only_git_has_and_can_read_is_kept(full: Home, loss: str) -> None:
    shutil.rmtree(full.files(FINISHED).folder)
    if loss == "description":
        object_of(full, f"{FINISHED}/_journal:session.json").unlink()
    else:
        HARMS[loss](full)
    assert repair_all(full) > 0
    assert [info.state for info in list_sessions(full)] == ["finished", "stopped"]
    assert_sound(full.store)


def test_sessions_that_only_git_has_are_found_if_all_branches_are_lost(full: Home) -> None:
    shutil.rmtree(full.sessions)
    git(full.store, "pack-refs", "--all")
    (full.store / "packed-refs").write_bytes(b"")
    assert repair_all(full) > 0
    assert [(info.name, info.state) for info in list_sessions(full)] == [
        (FINISHED, "finished"),
        (STOPPED, "stopped"),
    ]
    assert_sound(full.store)


def test_only_one_process_repairs_a_store(full: Home) -> None:
    HARMS["packed refs"](full)
    first = repairs(full)
    renewal = next(first)
    with pytest.raises(StoreBroken, match="another process repairs"):
        next(repairs(full))
    assert renewal.act is not None
    renewal.act()
    assert all(repair.act is not None and repair.act() is None for repair in first)
    assert repair_all(full) == 0


def test_store_of_a_running_session_is_left_alone(full: Home) -> None:
    HARMS["empty HEAD"](full)
    with locked(full.files(STOPPED).lock, wait_s=1.0):
        [repair] = repairs(full)
    assert repair.act is None
    assert STOPPED in repair.remedy


def test_damaged_journal_of_a_finished_session_is_written_again_from_the_store(full: Home) -> None:
    journal = full.files(FINISHED).stored_journal
    before = journal.read_bytes()
    journal.write_bytes(before[: len(before) // 2] + b"?" + before[len(before) // 2 + 1 :])
    with pytest.raises(JournalNotReadable, match="doctor --repair"):
        journal_of(full, FINISHED)
    assert repair_all(full) == 1
    assert journal.read_bytes() == before
    assert list_sessions(full)[0].state == "finished"


def test_sound_store_needs_no_repair_and_stays_as_it_is(full: Home) -> None:
    before = sorted(path for path in full.root.rglob("*") if path.suffix != ".lock")
    assert [*repairs(full)] == []
    assert sorted(path for path in full.root.rglob("*") if path.suffix != ".lock") == before
    assert [*repairs(Home(full.root / "nowhere"))] == []
