"""Attempts of one instance under way at once, in whole sessions: events, commits and resume."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import RecordingExhausted
from engine.models import Piece, Reply, Request, ScriptedClient
from engine.plan import SessionPlan
from engine.reviewing import Decisions
from harness import Verdict
from sessions import Home, fold, resume
from sessions.events import (
    CallFailed,
    CallFinished,
    EngineStarted,
    Event,
    InstanceFinished,
    MethodOptions,
    SessionFinished,
)
from sessions.journal import read_journal
from sessions.names import instance_key
from sessions.store import Store
from tests.conftest import SOAK
from tests.support.engines import ToldJudge, answering, plan, play, run, shared, told

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
STRIDE = 1 if SOAK else 5


class SlowClient(ScriptedClient):
    """Answers odd attempts at once and never any other."""

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        if request.key.attempt % 2 == 0:
            await asyncio.Event().wait()
        return await super().reply(request, on_piece)


def attempts_in(folder: Path, session: str) -> set[str]:
    """What the commits of the only instance's branch are of."""
    branch = f"{session}/starter/vector_add/1"
    told = subprocess.run(
        ["git", "-C", str(folder), "log", "--format=%s", branch], check=True, capture_output=True, text=True
    )
    return {subject.split()[0] for subject in told.stdout.splitlines()}


async def go_on(home: Home, of: SessionPlan, client: ScriptedClient) -> list[Event]:
    """Resume the session and run it to its end; its events."""
    with resume(home, of.session) as recorder:
        before = read_journal(recorder.live.journal).events
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        await run(shared(recorder, of, client, ToldJudge(), Decisions(before)))
        recorder.record(SessionFinished())
        events = list(read_journal(recorder.live.journal).events)
        await recorder.finish()
    return events


async def test_the_first_success_ends_what_is_under_way_elsewhere(tmp_path: Path) -> None:
    home = Home(tmp_path)
    client = SlowClient(answer=answering("wrong", "-", "correct 2.0"))
    events = await play(home, client, of=WORKERS)
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


class HeldBackClient(ScriptedClient):
    """Has no reply to one attempt, and one to the attempt after it only once that is known."""

    def __init__(self, *verdicts: str, lacking: int) -> None:
        super().__init__(answer=answering(*verdicts))
        self.lacking, self.exhausted = lacking, asyncio.Event()

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        if request.key.attempt == self.lacking:
            self.exhausted.set()
            raise RecordingExhausted("the recording ends here")
        if request.key.attempt > self.lacking:
            await self.exhausted.wait()
        return await super().reply(request, on_piece)


async def test_a_worker_whose_model_is_gone_does_not_hold_up_the_others(tmp_path: Path) -> None:
    events = await play(Home(tmp_path), HeldBackClient("-", "wrong", "-", "correct", lacking=1), of=WORKERS)
    state = fold(events)
    [ended] = [event for event in events if isinstance(event, InstanceFinished)]
    assert (ended.reason, ended.best) == ("solved", "vector_add#1/4")
    assert state.attempt("vector_add#1/1").verdict is Verdict.CANCELLED


@pytest.mark.parametrize("of", [ROUNDS, WORKERS], ids=["rounds", "workers"])
async def test_when_no_lane_succeeds_the_reason_of_the_first_ends_the_instance(
    tmp_path: Path, of: SessionPlan
) -> None:
    events = await play(Home(tmp_path), HeldBackClient("-", "wrong", lacking=1), of=of)
    [ended] = [event for event in events if isinstance(event, InstanceFinished)]
    assert ended.reason == "recording_exhausted"
    judged = {attempt.attempt for attempt in fold(events).attempts() if attempt.evaluation is not None}
    assert "vector_add#1/2" in judged, "what the other lane was at is judged"


async def test_the_branch_holds_every_attempt_whichever_was_committed_first(tmp_path: Path) -> None:
    home = Home(tmp_path)
    await play(home, told(*VERDICTS), of=ROUNDS)
    assert attempts_in(home.store, ROUNDS.session) == {f"vector_add#1/{number}" for number in range(1, 6)}


@pytest.mark.parametrize(
    ("of", "script"),
    [
        (ROUNDS, VERDICTS),
        (WORKERS, ("wrong", "prose", "wrong", "call_error", "wrong", "timeout")),
    ],
    ids=["rounds", "workers"],
)
async def test_from_every_moment_the_session_ends_as_it_would_have(
    tmp_path: Path, of: SessionPlan, script: tuple[str, ...]
) -> None:
    whole = Home(tmp_path / "whole")
    undisturbed = await play(whole, told(*script), of=of)
    kept = whole.live(of.session).journal.read_bytes().splitlines(keepends=True)
    for count in range(2, len(kept), STRIDE):
        home = Home(tmp_path / f"cut-{count}")
        live = home.live(of.session)
        live.folder.mkdir(parents=True)
        live.journal.write_bytes(b"".join(kept[:count]))
        held = list(read_journal(live.journal).events)
        client = told(*script)
        events = await go_on(home, of, client)
        state = fold(events)
        wanted = {
            attempt.attempt: attempt.verdict for attempt in fold(undisturbed).attempts() if attempt.verdict != "cancelled"
        }
        found = {attempt.attempt: attempt.verdict for attempt in state.attempts() if attempt.verdict != "cancelled"}
        assert found == wanted, f"after {count} lines"
        paid = {event.call for event in held if isinstance(event, CallFinished)}
        asked = {f"vector_add#1/{key.attempt}/{key.role}/{key.n}" for key in (r.key for r in client.requests)}
        assert not paid & asked, f"asked again after {count} lines"
        with Store.read_only(home.store) as store:
            assert store.session_events(of.session) == events
        assert attempts_in(home.store, of.session) >= set(wanted), f"after {count} lines"
        shutil.rmtree(home.root)


async def test_after_a_success_a_resume_leaves_nothing_open(tmp_path: Path) -> None:
    whole = Home(tmp_path / "whole")
    await play(whole, SlowClient(answer=answering("wrong", "-", "correct 2.0")), of=WORKERS)
    kept = whole.live(WORKERS.session).journal.read_bytes().splitlines(keepends=True)
    for count in range(2, len(kept)):
        home = Home(tmp_path / f"cut-{count}")
        live = home.live(WORKERS.session)
        live.folder.mkdir(parents=True)
        live.journal.write_bytes(b"".join(kept[:count]))
        client = SlowClient(answer=answering("wrong", "-", "correct 2.0"))
        state = fold(await go_on(home, WORKERS, client))
        verdicts = {attempt.attempt: str(attempt.verdict) for attempt in state.attempts()}
        assert verdicts == {
            "vector_add#1/1": "wrong",
            "vector_add#1/2": "cancelled",
            "vector_add#1/3": "correct",
        }, f"after {count} lines"
        calls = [call for attempt in state.attempts() for call in attempt.calls]
        assert all(call.finished or call.failed for call in calls), f"after {count} lines"
        shutil.rmtree(home.root)
