"""Protects resuming after SIGKILL at any moment: no finished work is repeated, and no command of a person is lost.

Engines are processes of their own. Model and judge are scripted: real ones take seconds to start.
`test_random_faults.py` kills processes of a real judge.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.plan.request import RunPlan
from engine.process import launch
from sessions import Home, fold
from sessions.errors import NothingToResume
from sessions.events import Event, InstanceForked, SessionFinished
from sessions.store.reconcile import record_at_rest
from sessions.store.store import Store, attempt_branch
from tests.conftest import SOAK
from tests.faults.person import (
    Person,
    assert_attempts_follow_the_person,
    assert_branch_follows_decisions,
    assert_each_hint_reaches_one_attempt,
    assert_each_instance_ended,
    assert_nothing_is_paid_twice,
    assert_orders_hold,
)
from tests.support.engine import quick_engine
from tests.support.engine.live_engines import journal, started
from tests.support.sessions.story import assert_sound, git, stored_events

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.judge

ROUNDS = 16 if SOAK else 1
"""Number of steered sessions."""
KILLS = 5 if SOAK else 3
"""Kills of each steered session."""


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
