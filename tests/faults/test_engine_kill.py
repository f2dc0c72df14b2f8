"""Protects resuming after SIGKILL at any moment: no finished work is repeated, and no command of a person is lost.

Engines are processes of their own. Model and judge are scripted, but in one test: real ones take seconds to start.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.plan.request import RunPlan
from engine.process import launch
from harness import Verdict
from sessions import Home, fold
from sessions.engine_info import read_engine_info
from sessions.errors import NothingToResume
from sessions.events import EngineStarted, Event, InstanceForked, SessionFinished
from sessions.store.reconcile import record_at_rest
from sessions.store.store import Store, attempt_branch
from tests.conftest import SOAK
from tests.faults.person import Person
from tests.faults.promises import (
    assert_attempts_follow_the_person,
    assert_branch_follows_decisions,
    assert_each_hint_reaches_one_attempt,
    assert_each_instance_ended,
    assert_nothing_is_paid_twice,
    assert_orders_hold,
    outcomes,
)
from tests.support.engine import quick_engine
from tests.support.engine.live_engines import journal, plan_for, right, started, until_left, wrong
from tests.support.engine.model_server import Answer, Seen, model_server, says
from tests.support.sessions.story import assert_sound, git, stored_events
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.judge

ROUNDS = 16 if SOAK else 1
"""Number of steered sessions."""
KILLS = 5 if SOAK else 3
"""Kills of each steered session."""
UNSTEERED_KILLS = 19 if SOAK else 4
"""Kills of the session that no person steers."""


QUICK = RunPlan(model="openai:test@http://127.0.0.1:9/v1", tasks=("vector_add",), instances=2, seed=7)
"""Plan of a session whose model is scripted, so the address is not used."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start engines with a scripted model and judge."""
    monkeypatch.setattr(launch, "ENGINE", "tests.support.engine.quick_engine")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_commands_hold_when_the_engine_is_killed(tmp_path: Path, seed: int) -> None:
    home = Home(tmp_path / "home")
    review = "manual" if seed % 3 == 2 else "auto"
    with started(replace(QUICK, iterations=6, review=review), home) as session:
        person = Person(home, session, random.Random(seed))
        for _ in range(KILLS):
            await person.steer_until_killed()
            before = person.events()
            assert_orders_hold(person.orders, before)
            resume(home, session)
            assert person.events()[: len(before)] == before, "events on disk do not change"
            with Store.read_only(home.store) as store:
                assert_branch_follows_decisions(store.accepted(), before)
        await person.let_finish()
    events = person.events()
    assert isinstance(events[-1], SessionFinished)
    assert_orders_hold(person.orders, events)
    assert_nothing_is_paid_twice(events, quick_engine.requests(home))
    assert_attempts_follow_the_person(events)
    assert_each_hint_reaches_one_attempt(events)
    assert_each_instance_ended(events)
    assert_store_is_whole(home, session, events, tmp_path / "clone")


@pytest.mark.soak
@pytest.mark.usefixtures("quick")
def test_killed_session_makes_the_attempts_of_an_undisturbed_one(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    moments = random.Random(7)
    plan = replace(QUICK, iterations=2 * UNSTEERED_KILLS)
    with started(plan, home) as undisturbed:
        until_left(home, undisturbed)
    expected, requests = outcomes(journal(home, undisturbed)), quick_engine.requests(home)
    with started(plan, home) as session:
        for _ in range(UNSTEERED_KILLS):
            kill_after(home, session, events=moments.randrange(20), delay_s=moments.random() * 0.05)
            try:
                launch.resume(home, session)
            except NothingToResume:  # killed after its last event; it is in the store now
                break
        until_left(home, session)
    events = journal(home, session)
    assert isinstance(events[-1], SessionFinished)
    assert outcomes(events) == expected
    assert_nothing_is_paid_twice(events, quick_engine.requests(home) - requests)
    assert_store_is_whole(home, session, events, tmp_path / "clone")


@pytest.mark.soak
def test_killed_engine_leaves_its_judge_nothing_to_repeat(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with (
        model_server(answer=repaired) as server,
        started(plan_for(server, instances=2, iterations=2), home) as session,
    ):
        kill_after(home, session, events=12, delay_s=0.1)
        launch.resume(home, session)
        until_left(home, session)
    events = journal(home, session)
    assert isinstance(events[-1], SessionFinished)
    assert sum(isinstance(event, EngineStarted) for event in events) == 2
    verdicts = [attempt.verdict for attempt in fold(events).attempts()]  # type: ignore[arg-type]
    assert verdicts == [Verdict.WRONG, Verdict.CORRECT] * 2
    assert_nothing_is_paid_twice(events, len(server.requests))


def repaired(seen: Seen) -> Answer:
    """Reply with a wrong kernel, a reflection, then the correct kernel each time."""
    if "Explain the failure" in seen.prompt:
        return says("It subtracts.")
    learned = "It subtracts." in seen.prompt or "# repaired" in seen.prompt
    return says(right("repaired") if learned else wrong())


def kill_after(home: Home, session: str, *, events: int, delay_s: float) -> None:
    """Kill the engine a moment after some further events; it may have left before."""
    count = len(journal(home, session)) + events
    live = home.files(session)
    wait_until(lambda: not live.running or len(journal(home, session)) >= count, "the session to continue")
    # A random delay, so that the kill does not always follow the write of an event.
    time.sleep(delay_s)
    info = read_engine_info(live)
    if info is not None and live.running:
        os.kill(info.pid, signal.SIGKILL)
    until_left(home, session)


def resume(home: Home, session: str) -> None:
    """Continue a session; a finished session is opened again by a command first."""
    try:
        launch.resume(home, session)
    except NothingToResume:
        first = fold(journal(home, session)).attempts()[0]  # type: ignore[arg-type]
        record_at_rest(home, session, InstanceForked(base=first.attempt))
        launch.resume(home, session)


def assert_store_is_whole(home: Home, session: str, events: list[Event], clone: Path) -> None:
    assert_sound(home.store)
    git(home.root, "clone", "-q", "--bare", str(home.store), str(clone))
    with Store.read_only(clone) as store:
        assert stored_events(store, session) == events
    state = fold(events)  # type: ignore[arg-type]
    for instance in state.instances.values():
        branch = attempt_branch(session, instance.key)
        # An attempt that is retired before its reply has no source, so there is nothing to commit.
        commits = {
            attempt.commit
            for attempt in instance.attempts
            if attempt.evaluation is not None and attempt.source is not None
        }
        assert not commits or commits <= set(git(home.store, "rev-list", branch).split()), branch
