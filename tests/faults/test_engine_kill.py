"""Protects resuming after SIGKILL at any moment: no finished model call or judging is repeated."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from engine import launch
from harness import Verdict
from sessions import Home, fold
from sessions.events import (
    AttemptJudged,
    CallFinished,
    CandidateProposed,
    EngineStarted,
    Event,
    SessionFinished,
    WinnerExamined,
)
from sessions.home import read_engine_info
from sessions.store import Store
from tests.conftest import SOAK
from tests.support.live_engines import journal, plan_for, right, started, until, until_left, wrong
from tests.support.model_server import Answer, Seen, model_server, says

pytestmark = [pytest.mark.judge, pytest.mark.timeout(1800 if SOAK else 300)]

KILLS = 20 if SOAK else 2


def answer(seen: Seen) -> Answer:
    """Replies in order: a wrong kernel, a reflection, then the correct kernel each time."""
    if "Explain the failure" in seen.prompt:
        return says("It subtracts.")
    learned = "It subtracts." in seen.prompt or "# repaired" in seen.prompt
    return says(right("repaired") if learned else wrong())


def test_killed_engine_resumes_without_repeating_work(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    moments = random.Random(11)
    with (
        model_server(answer=answer) as server,
        started(plan_for(server, instances=2, iterations=3), home) as session,
    ):
        for _ in range(KILLS):
            if not kill_while_running(home, session, moments):
                break
            before = journal(home, session)
            launch.resume(home, session)
            assert journal(home, session)[: len(before)] == before, "events on disk do not change"
        until_left(home, session)
    events = journal(home, session)
    assert isinstance(events[-1], SessionFinished)
    assert_each_thing_happened_once(
        events, kills=sum(isinstance(event, EngineStarted) for event in events) - 1
    )
    # Only a request in progress when the engine died is sent again.
    finished = sum(isinstance(event, CallFinished) for event in events)
    assert finished <= len(server.requests) <= finished + 2 * KILLS
    verdicts = [attempt.verdict for attempt in fold(events).attempts()]  # type: ignore[arg-type]
    assert verdicts == [Verdict.WRONG, Verdict.CORRECT, Verdict.CORRECT] * 2
    assert_store_is_whole(home, session, events, tmp_path / "clone")


def kill_while_running(home: Home, session: str, moments: random.Random) -> bool:
    """Kills the engine some events later; returns True if the session was still unfinished."""
    event_count = len(journal(home, session)) + moments.randrange(4, 16)
    live = home.live(session)
    until(lambda: not live.running or len(journal(home, session)) >= event_count, "the session to continue")
    # A random delay, so that the kill does not always follow the write of an event.
    time.sleep(moments.random() * 0.2)
    info = read_engine_info(live)
    if info is None or not live.running:
        return False
    os.kill(info.pid, signal.SIGKILL)
    until_left(home, session)
    return not isinstance(journal(home, session)[-1], SessionFinished)


def assert_each_thing_happened_once(events: list[Event], *, kills: int) -> None:
    assert kills >= 1
    once = (CallFinished, CandidateProposed, AttemptJudged, WinnerExamined)
    for kind in once:
        name = "call" if kind is CallFinished else "attempt"
        counts = Counter(getattr(event, name) for event in events if isinstance(event, kind))
        assert set(counts.values()) == {1}, f"{kind.__name__} twice"


def assert_store_is_whole(home: Home, session: str, events: list[Event], clone: Path) -> None:
    subprocess.run(["git", "-C", str(home.store), "fsck", "--strict"], check=True, capture_output=True)
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(home.store), str(clone)], check=True, capture_output=True
    )
    with Store.read_only(clone) as store:
        assert store.session_events(session) == events
