"""Parallel attempts of one instance in whole sessions: events, commits and resume."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import RecordingExhausted
from engine.models import Piece, Reply, Request, ScriptedClient
from engine.plan.plan import SessionPlan
from harness import Verdict
from sessions import Home, fold
from sessions.events import CallFailed, CallFinished, CallStarted, Event, InstanceFinished, StageStarted
from sessions.names import instance_key
from sessions.settings import MethodOptions
from sessions.store.store import Store
from tests.conftest import SOAK
from tests.support.engine.engines import (
    cut,
    endings,
    plan,
    play,
    resume_to_end,
    scripted_answer,
    scripted_model,
)
from tests.support.sessions.story import git, stored_events

WORKERS = plan(
    session="20260101-000000-kernelagent-0000",
    method="kernelagent",
    iterations=6,
    options=MethodOptions(workers=2),
)
ROUNDS = plan(
    session="20260101-000000-geak-evolve-0000",
    method="geak-evolve",
    iterations=5,
    options=MethodOptions(descendants=2),
)
VERDICTS = ("wrong", "correct 1.5", "prose", "correct 2.5", "correct 2.0")
STRIDE = 1 if SOAK else 23


class SlowClient(ScriptedClient):
    """Client that answers the attempts of one of two lanes at once, and never those of lane `silent`."""

    silent = 2

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        if request.key.attempt % 2 == self.silent % 2:
            await asyncio.Event().wait()
        return await super().reply(request, on_piece)


def attempts_in(folder: Path, session: str) -> set[str]:
    """Return the attempts whose commits are on the branch of instance 1."""
    branch = f"{session}/starter/vector_add/1"
    return {subject.split()[0] for subject in git(folder, "log", "--format=%s", branch).splitlines()}


async def test_first_success_cancels_the_other_workers(tmp_path: Path) -> None:
    home = Home(tmp_path)
    client = SlowClient(answer=scripted_answer("wrong", "-", "correct 2.0"))
    events = await play(home, client, session_plan=WORKERS)
    state = fold(events)
    verdicts = {attempt.attempt: attempt.verdict for attempt in state.attempts()}
    assert verdicts == {
        "vector_add#1/1": Verdict.WRONG,
        "vector_add#1/2": Verdict.CANCELLED,
        "vector_add#1/3": Verdict.CORRECT,
    }
    [ended] = [event for event in events if isinstance(event, CallFailed)]
    assert (ended.call.partition("/generator")[0], ended.reason) == ("vector_add#1/2", "cancelled")
    assert "another worker" in ended.message
    assert state.instances[instance_key("starter/vector_add", 1)].best == "vector_add#1/3"


@pytest.mark.parametrize("silent", [1, 2])
async def test_resume_in_the_exam_asks_no_cancelled_worker_again(tmp_path: Path, silent: int) -> None:
    whole, home = Home(tmp_path / "whole"), Home(tmp_path / "cut")
    client = SlowClient(answer=scripted_answer("wrong", "wrong", "correct"))
    client.silent = silent
    events = await play(whole, client, session_plan=WORKERS)
    stopped = next(n for n, event in enumerate(events) if isinstance(event, StageStarted) and event.exam)
    cut(whole, home, WORKERS.session, stopped)
    resumed = await resume_to_end(home, WORKERS, client)
    assert endings(resumed) == ["solved"]
    assert not any(isinstance(event, CallStarted) for event in resumed[stopped:])


class HeldBackClient(ScriptedClient):
    """Client without a reply to attempt `lacking`; later attempts are answered only after that failure."""

    def __init__(self, *verdicts: str, lacking: int) -> None:
        super().__init__(answer=scripted_answer(*verdicts))
        self.lacking, self.exhausted = lacking, asyncio.Event()

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        if request.key.attempt == self.lacking:
            self.exhausted.set()
            raise RecordingExhausted
        if request.key.attempt > self.lacking:
            await self.exhausted.wait()
        return await super().reply(request, on_piece)


async def test_worker_without_a_model_does_not_stop_the_others(tmp_path: Path) -> None:
    events = await play(
        Home(tmp_path), HeldBackClient("-", "wrong", "-", "correct", lacking=1), session_plan=WORKERS
    )
    state = fold(events)
    [ended] = [event for event in events if isinstance(event, InstanceFinished)]
    assert (ended.reason, ended.best) == ("solved", "vector_add#1/4")
    assert state.attempt("vector_add#1/1").verdict is Verdict.CANCELLED


@pytest.mark.parametrize("session_plan", [ROUNDS, WORKERS], ids=["rounds", "workers"])
async def test_instance_ends_with_the_reason_of_the_first_lane_if_all_fail(
    tmp_path: Path, session_plan: SessionPlan
) -> None:
    events = await play(Home(tmp_path), HeldBackClient("-", "wrong", lacking=1), session_plan=session_plan)
    [ended] = [event for event in events if isinstance(event, InstanceFinished)]
    assert ended.reason == "recording_exhausted"
    judged = {attempt.attempt for attempt in fold(events).attempts() if attempt.evaluation is not None}
    assert "vector_add#1/2" in judged, "the attempt of the other lane is judged"


def one_silent_worker(*verdicts: str) -> ScriptedClient:
    return SlowClient(answer=scripted_answer(*verdicts))


@pytest.mark.parametrize(
    ("session_plan", "model", "script"),
    [
        (ROUNDS, scripted_model, VERDICTS),
        (WORKERS, scripted_model, ("wrong", "prose", "wrong", "call_error", "wrong", "timeout")),
        (WORKERS, one_silent_worker, ("wrong", "-", "correct 2.0")),
    ],
    ids=["rounds", "workers", "a success"],
)
async def test_resume_after_any_event_gives_the_same_verdicts_and_leaves_no_open_call(
    tmp_path: Path, session_plan: SessionPlan, model: Callable[..., ScriptedClient], script: tuple[str, ...]
) -> None:
    whole = Home(tmp_path / "whole")
    uninterrupted = await play(whole, model(*script), session_plan=session_plan)
    expected = judged_in(uninterrupted)
    for count in range(2, len(uninterrupted), STRIDE):
        home = Home(tmp_path / f"cut-{count}")
        first_events = cut(whole, home, session_plan.session, count)
        client = model(*script)
        events = await resume_to_end(home, session_plan, client, store=True)
        assert judged_in(events) == expected, f"after {count} lines"
        paid = {event.call for event in first_events if isinstance(event, CallFinished)}
        asked = {f"vector_add#1/{key.attempt}/{key.role}/{key.n}" for key in (r.key for r in client.requests)}
        assert not paid & asked, f"called again after {count} lines"
        calls = [call for attempt in fold(events).attempts() for call in attempt.calls]
        assert all(call.finished or call.failed for call in calls), f"after {count} lines"
        with Store.read_only(home.store) as store:
            assert stored_events(store, session_plan.session) == events
        assert attempts_in(home.store, session_plan.session) >= set(expected), f"after {count} lines"
        shutil.rmtree(home.root)


def judged_in(events: list[Event]) -> dict[str, Verdict | None]:
    """Return the verdicts of attempts that were not cancelled."""
    return {
        attempt.attempt: attempt.verdict
        for attempt in fold(events).attempts()
        if attempt.verdict is not Verdict.CANCELLED
    }
