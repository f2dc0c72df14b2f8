"""Hints, decisions, pauses and the end of running instances by a person; a resumed session follows them again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness import Evaluation, Verdict
from sessions import Recorder, apply, fold, resume
from sessions.errors import CommandRefused
from sessions.events import (
    AttemptStarted,
    CallStarted,
    DeviceLent,
    DeviceReturned,
    HintGiven,
    Paused,
    RetireAsked,
    Unpaused,
    WaitingForPerson,
    checked,
)
from sessions.state.state import Confirmation
from tests.support.engine.engines import ScriptedJudge, plan, until
from tests.support.engine.steering import PLAN, Table, give_turns, refused, said


async def test_hint_reaches_only_the_next_attempt_of_its_instance(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.acts["1/1/generator"] = lambda: table.command(
        HintGiven(instance="vector_add#1", text="Use wide\nloads.")
    )
    events = await table.play()
    assert said(events) == {"vector_add#1/2/generator/1": ['- a person gives a hint: "Use wide loads."']}


async def test_decisions_reach_all_later_prompts_of_the_same_task(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(instances=2, iterations=4))
    decided = table.hold["2/3/optimizer"] = asyncio.Event()

    def reject() -> None:
        table.decide("vector_add#1/2", accepted=False, why="reads past the row")
        decided.set()

    table.acts["1/3/optimizer"] = reject
    events = await table.play()
    words = ['- a person rejected vector_add#1/2: "reads past the row"']
    assert said(events)["vector_add#1/4/optimizer/1"] == words
    assert said(events)["vector_add#2/4/optimizer/1"] == words


async def test_accept_is_quoted_only_with_a_reason(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=4))

    def accept() -> None:
        table.decide("vector_add#1/1", accepted=True, why="")
        table.decide("vector_add#1/2", accepted=True, why="plain and fast")

    table.acts["1/3/optimizer"] = accept
    events = await table.play()
    assert said(events) == {
        "vector_add#1/4/optimizer/1": ['- a person accepted vector_add#1/2: "plain and fast"']
    }


async def test_hint_that_no_attempt_can_follow_is_refused(tmp_path: Path) -> None:
    hint = HintGiven(instance="vector_add#1", text="x")
    table = Table(tmp_path, plan(iterations=2))
    refused(await table.play(kill_at="1/2/generator"), "asks for no further attempt", hint)
    events = await table.play()
    refused(events[:-1], "has ended", hint)
    refused(events, "the session is finished", hint)


async def test_retired_instance_keeps_its_winner_and_is_examined(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(instances=2, iterations=4), "correct 1.5")
    table.acts["1/2/optimizer"] = lambda: table.command(RetireAsked(instance="vector_add#1", by="me"))
    events = await table.play()
    state = fold(events)
    stopped = state.instances["vector_add#1"]
    assert (stopped.finished, stopped.message, stopped.best) == ("retired", "by me", "vector_add#1/1")
    assert [attempt.verdict for attempt in stopped.attempts] == [Verdict.CORRECT, Verdict.CANCELLED]
    assert stopped.attempts[0].confirmation is Confirmation.CONFIRMED
    assert len(state.instances["vector_add#2"].attempts) == 4, "the other instance goes on"


async def test_judging_that_a_retirement_cuts_off_keeps_its_device_time(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=4), "correct 1.5")

    class EndlessJudge(ScriptedJudge):
        async def evaluate(self, *args: Any, **more: Any) -> Evaluation:
            await super().evaluate(*args, **more)
            table.command(RetireAsked(instance="vector_add#1", by="me"))
            await asyncio.Event().wait()
            raise AssertionError("nothing ends the wait")

    table.judge = EndlessJudge()
    [attempt] = fold(await table.play()).attempts()
    assert attempt.verdict is Verdict.CANCELLED
    assert attempt.device_s > 0


async def test_retirement_before_a_crash_holds_after_resume(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=4), "correct 1.5")
    await table.play(kill_at="1/2/optimizer")
    with resume(table.home, PLAN.session) as recorder:
        recorder.record(RetireAsked(instance="vector_add#1", by="me"))
    events = await table.play()
    instance = fold(events).instances["vector_add#1"]
    assert instance.finished == "retired"
    assert [attempt.verdict for attempt in instance.attempts] == [Verdict.CORRECT, Verdict.CANCELLED]


@pytest.mark.parametrize("instance", ["vector_add#1", ""])
async def test_paused_instance_starts_nothing_until_unpaused(tmp_path: Path, instance: str) -> None:
    table = Table(tmp_path, plan(instances=2, iterations=3), "correct 1.5")

    table.acts["1/2/optimizer"] = lambda: table.command(Paused(instance=instance))
    engine = asyncio.create_task(table.play())
    await until(lambda: table.is_judged("vector_add#1/2"))
    await give_turns()
    table.command(Unpaused(instance=instance))
    events = await engine
    [begin] = [event.seq for event in events if isinstance(event, Paused)]
    [end] = [event.seq for event in events if isinstance(event, Unpaused)]
    begun = [
        event.attempt
        for event in events
        if isinstance(event, AttemptStarted | CallStarted) and begin < event.seq < end
    ]
    assert not [attempt for attempt in begun if attempt.startswith(instance or "vector_add")]
    assert fold(events).attempt("vector_add#1/2").judged_seq < end, "what runs finishes"
    assert {len(each.attempts) for each in fold(events).instances.values()} == {3}


async def test_pause_holds_after_resume(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=2), "correct 1.5")
    await table.play(kill_at="1/1/generator")
    with resume(table.home, PLAN.session) as recorder:
        recorder.record(Paused(by="me"))
    table.recorder = None
    engine = asyncio.create_task(table.play())
    await until(lambda: table.recorder)
    await give_turns()
    assert not engine.done()
    with pytest.raises(CommandRefused, match="already paused"):
        table.command(Paused())
    table.command(Unpaused())
    events = await engine
    assert fold(events).instances["vector_add#1"].finished == "iterations"


async def test_manual_review_holds_only_at_a_better_attempt(tmp_path: Path) -> None:
    session_plan = plan(iterations=4, review="manual")
    table = Table(tmp_path, session_plan, "correct 2.0", "correct 1.5", "correct 2.0", "correct 3.0")
    engine = asyncio.create_task(table.play())
    for attempt in ("vector_add#1/1", "vector_add#1/4"):
        await until(lambda: table.waiting() == [attempt])  # noqa: B023  # awaited in the same turn
        table.decide(attempt, accepted=True, why="")
    events = await engine
    held = [event.attempt for event in events if isinstance(event, WaitingForPerson)]
    assert held == ["vector_add#1/1", "vector_add#1/4"]
    assert len(fold(events).attempts()) == 4


async def test_first_review_waits_once_in_a_session_and_is_resumed_so(tmp_path: Path) -> None:
    session_plan = plan(instances=2, iterations=3, review="first")
    verdicts = ("correct 1.5", "correct 2.0", "correct 3.0")
    table = Table(tmp_path, session_plan, *verdicts)
    engine = asyncio.create_task(table.play(kill_at="1/3/optimizer"))
    await until(lambda: table.is_judged("vector_add#1/1") and table.is_judged("vector_add#2/1"))
    (waiting,) = table.waiting()
    table.decide(waiting, accepted=True, why="")
    await engine
    events = await table.play()
    assert [event.attempt for event in events if isinstance(event, WaitingForPerson)] == [waiting]
    assert [len(instance.attempts) for instance in fold(events).instances.values()] == [3, 3]


async def test_attempt_that_is_decided_during_its_commit_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path, plan(iterations=2, review="manual"), "correct 2.0", "wrong")
    commit = Recorder.commit_attempt

    async def decide_during_commit(recorder: Recorder, attempt: str) -> str:
        if attempt == "vector_add#1/1" and table.recorder.state.attempt(attempt).decision is None:
            table.decide(attempt, accepted=True, why="")
        return await commit(recorder, attempt)

    monkeypatch.setattr(Recorder, "commit_attempt", decide_during_commit)
    waiting: list[str] = []
    table.acts["1/2/optimizer"] = lambda: waiting.extend(table.waiting())
    events = await table.play()
    assert len(fold(events).attempts()) == 2
    assert waiting == []


@pytest.mark.parametrize(
    ("gpus", "lent", "refusals"),
    [
        (
            ("0", "1"),
            ("1",),
            [
                ("1", "already lent"),
                ("0", "the last one in service"),
                ("7", "has no GPU 7; it has 0, 1"),
            ],
        ),
        (
            ("node1/0", "node1/1", "node2/0"),
            ("node1/1", "node1"),
            [
                ("node1", "already lent"),
                ("node2", "the last one in service"),
                ("node3", "has no GPU"),
            ],
        ),
    ],
)
async def test_gpu_or_node_is_lent_and_taken_back_but_never_the_last_one(
    tmp_path: Path, gpus: tuple[str, ...], lent: tuple[str, ...], refusals: list[tuple[str, str]]
) -> None:
    state = fold(await Table(tmp_path, plan(devices=gpus)).play(kill_at="1/1/generator"))
    for name in lent:
        apply(state, checked(DeviceLent(device=name), state))
    assert state.lent == {gpu for gpu in gpus if gpu.startswith(lent[-1])}
    for name, words in refusals:
        with pytest.raises(CommandRefused, match=words):
            apply(state, checked(DeviceLent(device=name), state))
    with pytest.raises(CommandRefused, match="is not lent"):
        apply(state, checked(DeviceReturned(device=refusals[1][0]), state))
    apply(state, checked(DeviceReturned(device=lent[-1]), state))
    assert not state.lent
