"""SIGKILL before each write of the memory: whatever a session was doing, a person's next commands lose nothing.

A scenario runs in a process group of its own, with its git commands, and is killed at one write; the next process looks at the
sessions, repairs them, and does the same again. `STRIDE` leaves writes out.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness import Verdict
from sessions import EventClock, Home, Recorder, fold, journal_of, list_sessions, record_at_rest, resume
from sessions import events as ev
from sessions.catalog import delete_session
from sessions.errors import NoSuchSession, NothingToResume, StoreBroken
from sessions.repairs import repairs
from sessions.store import projection
from sessions.store.sharing import fetch_sessions, push_sessions
from sessions.store.store import Store
from tests.support.sessions import story
from tests.support.sessions.story import SESSION, assert_sound, git

pytestmark = pytest.mark.soak

STRIDE = 7
CALLS = ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync", "fdatasync", "ftruncate", "write", "open")
Act = Callable[[Home], object]


class Writes:
    """Counts the calls of this process that write, and kills its process group before one of them."""

    def __init__(self, fatal: int) -> None:
        self.count = 0
        self._fatal = fatal
        for name in CALLS:
            setattr(os, name, partial(self._call, name, getattr(os, name)))
        start = subprocess.Popen.__init__
        subprocess.Popen.__init__ = lambda *args, **options: self._call("", start, *args, **options)  # type: ignore[method-assign]

    def _call(self, name: str, real: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if name != "open" or args[1] & os.O_CREAT:
            self.count += 1
            if self.count == self._fatal:
                if name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                os.killpg(0, signal.SIGKILL)
                time.sleep(60)
        return real(*args, **options)


def in_a_process(work: Callable[[], object]) -> int:
    """Do the work in a process group of its own; returns the status of its end, 0 if it raised nothing."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        try:
            work()
        except BaseException:  # noqa: BLE001  # the parent sees the status
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


# Scenarios


def play_on(home: Home) -> None:
    """Record a session to its end as an engine does: from its beginning, or from where it is."""
    clock = EventClock(story.Ticking(), story.Ticking(0.0))
    try:
        recorder = resume(home, SESSION, clock=clock)
    except NoSuchSession:
        with suppress(NoSuchSession):
            delete_session(home, SESSION)  # a journal without its first event
        recorder = Recorder.begin(home, story.started(instances=1), clock=clock)
    except NothingToResume:
        return
    done = sum(isinstance(event, PLANNED) for event in journal_of(home, SESSION).events)
    attempts = [*story.attempt("softmax#1/1", Verdict.WRONG), *story.attempt("softmax#1/2", Verdict.CORRECT)]
    events: list[ev.Event] = [
        ev.InstanceStarted(task="starter/softmax", instance=1),
        *attempts,
        *story.exam("softmax#1/2", Verdict.CORRECT),
        ev.DecisionMade(attempt="softmax#1/2", accepted=True, by="ada"),
        ev.InstanceFinished(task="starter/softmax", instance=1, reason="iterations", best="softmax#1/2"),
        ev.SessionFinished(solved=("starter/softmax",)),
    ]
    with recorder:
        recorder.record(ev.EngineStarted(host="node", pid=1, resumed=done > 0))
        for event in events[done:]:
            if isinstance(event, ev.DecisionMade):
                recorder.now(recorder.follow(event))
            else:
                recorder.record(event)
            if isinstance(event, ev.AttemptJudged):
                asyncio.run(recorder.commit_attempt(event.attempt))
        asyncio.run(recorder.finish())


PLANNED = (
    ev.InstanceStarted, ev.AttemptStarted, ev.CallStarted, ev.ReplyPiece, ev.CallRetried, ev.CallFinished,
    ev.CandidateProposed, ev.StageStarted, ev.StageFinished, ev.AttemptJudged, ev.WinnerExamined, ev.DecisionMade,
    ev.InstanceFinished, ev.SessionFinished,
)  # fmt: skip


def decide(home: Home) -> None:
    if not fold(journal_of(home, SESSION).events).title:
        record_at_rest(home, SESSION, ev.SessionTitled(title="mine"))
        record_at_rest(home, SESSION, ev.DecisionUndone(attempt="softmax#1/2", by="ada"))


def repair(home: Home) -> None:
    for damage in repairs(home):
        assert damage.act is not None, damage
        damage.act()


def other(home: Home) -> Path:
    return home.root.with_name("other")


def fetch(home: Home) -> None:
    fetch_sessions(home, str(other(home) / "store.git"), on_progress=lambda _line: None)
    journal_of(home, SESSION)


def fetch_newer(home: Home) -> None:
    played = home.root.rename(other(home))
    fetch(home)
    record_at_rest(Home(played), SESSION, ev.SessionTitled(title="newer"))


def push(home: Home) -> None:
    push_sessions(home, str(other(home)), on_progress=lambda _line: None)


def delete(home: Home) -> None:
    with suppress(NoSuchSession):
        delete_session(home, SESSION)
    assert list_sessions(home) == []
    repair(home)
    assert list_sessions(home) == []


def without_store(home: Home) -> None:
    shutil.rmtree(home.store)


def without_folder(home: Home) -> None:
    shutil.rmtree(home.files(SESSION).folder)


def with_lost_objects(home: Home) -> None:
    story.loosen(home.store)
    for name in ("_journal~1^{tree}", "starter/softmax/1:kernel.py"):
        story.lose(home, f"{SESSION}/{name}")


def with_a_cut_journal(home: Home) -> None:
    journal = home.files(SESSION).stored_journal
    journal.write_bytes(journal.read_bytes()[:-20])


def nothing(_home: Home) -> None:
    """The home stays as it is."""


SCENARIOS: dict[str, tuple[Act, Act]] = {
    "session": (lambda home: shutil.rmtree(home.root), play_on),
    "decision": (nothing, decide),
    "lost store": (without_store, repair),
    "lost objects": (with_lost_objects, repair),
    "cut journal": (with_a_cut_journal, repair),
    "journal from git": (without_folder, lambda home: journal_of(home, SESSION)),
    "fetch": (lambda home: home.root.rename(other(home)), fetch),
    "newer fetch": (fetch_newer, fetch),
    "push": (lambda home: git(home.root, "init", "--quiet", "--bare", str(other(home))), push),
    "deletion": (nothing, delete),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_kill_at_a_write_loses_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(projection, "PIECE_BYTES", 3000)
    prepare, act = SCENARIOS[name]
    made, counted = Home(tmp_path / "made" / "home"), tmp_path / "count"
    assert in_a_process(lambda: play_on(made)) == 0, capfd.readouterr().err
    before = journal_of(made, SESSION).events if name != "session" else []
    assert in_a_process(lambda: prepare(made)) == 0, capfd.readouterr().err

    def run(home: Home, fatal: int) -> None:
        writes = Writes(fatal)
        act(home)
        counted.write_text(str(writes.count))

    place = tmp_path / "copy"
    shutil.copytree(made.root.parent, place)
    assert in_a_process(lambda: run(Home(place / "home"), 0)) == 0, capfd.readouterr().err
    kills = 0
    for fatal in range(1, int(counted.read_text()) + 1, STRIDE):
        shutil.rmtree(place)
        shutil.copytree(made.root.parent, place)
        home = Home(place / "home")
        ends = in_a_process(lambda fatal=fatal, home=home: run(home, fatal))
        # Threads write in no fixed order, so the number of writes differs by a few.
        assert ends in (0, signal.SIGKILL), capfd.readouterr().err
        kills += ends == signal.SIGKILL
        status = in_a_process(
            lambda fatal=fatal, home=home: recover(home, act, before, repairs_first=fatal % 2 == 0)
        )
        assert status == 0, f"killed at write {fatal}: {capfd.readouterr().err[-3000:]}"
    assert kills > 0


def recover(home: Home, act: Act, before: list[ev.AnyEvent], *, repairs_first: bool) -> None:
    """Look at the sessions, repair, and do it again; then nothing is lost, and nothing is left to do."""
    with suppress(StoreBroken):
        list_sessions(home)
    if repairs_first:
        repair(home)
    act(home)
    assert_sound(home.store)
    if act is delete:
        return
    with suppress(NothingToResume):
        resume(home, SESSION)
    assert [*repairs(home)] == []
    assert [info.state for info in list_sessions(home)] == ["finished"]
    events = journal_of(home, SESSION).events
    assert events[: len(before)] == before
    paid = [event.call for event in events if isinstance(event, ev.CallFinished)]
    judged = [event.attempt for event in events if isinstance(event, ev.AttemptJudged)]
    assert (len(paid), len(judged)) == (len({*paid}), len({*judged})) == (3, 2)
    state = fold(events)
    commits = [attempt.commit for attempt in state.attempts()]
    with Store.of(home) as store:
        assert story.stored_events(store, SESSION) == events
        assert store.session_is_complete(SESSION, [commit or "" for commit in commits])
        assert store.is_own(SESSION) is (act is not fetch)
    branches = git(home.store, "for-each-ref", f"refs/heads/{SESSION}")
    assert commits[-1] in branches
    shutil.rmtree(home.store)
    repair(home)
    assert git(home.store, "for-each-ref", f"refs/heads/{SESSION}") == branches, "git is a projection"
