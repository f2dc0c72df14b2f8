"""kill -9 at any moment: no acknowledged event is lost, git stays valid, and the session can be finished."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from sessions import Home, Store, fold, list_sessions
from sessions import events as ev
from sessions.journal.codec import tag_of
from sessions.journal.journal import read_journal
from tests.support.story import SESSION, assert_sound, git

ROUNDS = 40 if os.environ.get("WAVEDECK_SOAK") == "1" else 3
"""Number of sessions; each is killed several times."""
KILLS = 4
LINES = 40
"""Approximate number of acknowledged events of a whole session."""


def run_and_kill(home: Home, chance: random.Random | None) -> tuple[list[str], int]:
    """Run the storyteller and return its printed lines and exit code.

    With `chance` it is killed a moment after a random number of acknowledged events.
    """
    command = [sys.executable, "-m", "tests.sessions.storyteller", str(home.root)]
    printed: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as storyteller:
        assert storyteller.stdout is not None
        kill_after = chance.randint(1, LINES) if chance else None
        killer = threading.Timer(chance.uniform(0.0, 0.03), storyteller.kill) if chance else None
        for line in storyteller.stdout:
            if line.endswith("\n"):
                printed.append(line.strip())
            if killer is not None and len(printed) == kill_after:
                killer.start()
        _, errors = storyteller.communicate()
        if killer is not None:
            killer.cancel()
        assert storyteller.returncode in (0, -9), errors
        let_packing_end(storyteller.pid)
        return printed, storyteller.returncode


def let_packing_end(session: int) -> None:
    """Wait for the git process that packs: it outlives the killed process and would disturb fsck."""
    packers = [
        process for process in psutil.process_iter() if process.is_running() and sid(process.pid) == session
    ]
    _, alive = psutil.wait_procs(packers, timeout=60)
    assert not alive, f"waited 60 s for the end of git: {alive}"


def sid(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_session_killed_at_any_moment_loses_no_acknowledged_event(
    seed: int, home: Home, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    acknowledged: list[str] = []
    for _ in range(KILLS):
        printed, code = run_and_kill(home, chance)
        acknowledged += printed
        if code == 0:
            break
        if home.store.exists():
            assert_sound(home.store)
        journal = home.live(SESSION).journal
        if journal.exists():
            check_acknowledged(acknowledged, read_journal(journal).events)
            (info,) = list_sessions(home)
            assert info.state in ("crashed", "not stored", "finished")
    else:
        printed, code = run_and_kill(home, None)
        acknowledged += printed

    assert home.live_sessions() == []
    assert_sound(home.store)
    git(tmp_path, "clone", "--quiet", str(home.store), "clone")
    with Store.read_only(tmp_path / "clone") as clone, Store.read_only(home.store) as store:
        events = store.session_journal(SESSION).events
        assert clone.session_journal(SESSION).events == events
    check_acknowledged(acknowledged, events)
    calls = [event.call for event in events if isinstance(event, ev.CallFinished)]
    judged = [event.attempt for event in events if isinstance(event, ev.AttemptJudged)]
    assert len(calls) == len(set(calls)) == 12
    assert len(judged) == len(set(judged)) == 9
    examined = [event.attempt for event in events if isinstance(event, ev.WinnerExamined)]
    assert len(examined) == len(set(examined)) == 6, "a recorded exam is not repeated"
    state = fold(events)
    assert state.finished
    for number in (1, 2, 3):
        branch = f"{SESSION}/starter/softmax/{number}"
        subjects = git(home.store, "log", "--format=%s %H", branch).splitlines()
        assert [line.split()[0] for line in subjects] == [f"softmax#{number}/{index}" for index in (3, 2, 1)]
        commits = [attempt.commit for attempt in state.instances[f"softmax#{number}"].attempts]
        assert [line.split()[-1] for line in subjects] == commits[::-1]
        for index, verdict in ((3, "wrong"), (2, "correct")):
            exam = git(home.store, "show", f"{SESSION}/_journal:exams/starter/softmax/{number}/{index}.json")
            assert f'"verdict": "{verdict}"' in exam
    accepted = git(home.store, "log", "--format=%s", "accepted").splitlines()
    assert sorted(accepted) == [f"accept softmax#{number}/3" for number in (1, 2, 3)]


def check_acknowledged(acknowledged: list[str], events: list[ev.AnyEvent]) -> None:
    """Assert that every printed line matches the event with this number in the journal."""
    by_seq = {event.seq: event for event in events}
    for line in acknowledged:
        seq, tag, *subject = line.split()
        event = by_seq[int(seq)]
        assert tag_of(event) == tag
        expected = (
            getattr(event, "call", "") or getattr(event, "attempt", "") or getattr(event, "instance", "")
        )
        assert [str(expected)] == subject or (not subject and not expected)
