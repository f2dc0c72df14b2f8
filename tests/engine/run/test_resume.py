"""Resume after a crash at any point: the journal of a whole session is cut after each line in turn."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.errors import UselessToRetry
from engine.models import Reply, Request, ScriptedClient
from engine.plan.job import session_started
from engine.plan.plan import SessionPlan
from harness import Verdict
from sessions import Home, Recorder, fold, resume
from sessions.events import (
    AttemptJudged,
    CallFinished,
    CandidateProposed,
    DecisionMade,
    EngineStarted,
    Event,
    InstanceFinished,
    Notice,
    Role,
    WinnerExamined,
)
from sessions.journal.journal import read_journal
from sessions.state.state import Confirmation
from sessions.store.store import Store
from tests.conftest import SOAK
from tests.support.engine.engines import (
    ScriptedJudge,
    answer_of,
    cut,
    plan,
    play,
    resume_to_end,
    run,
    scripted_model,
    shared,
    until,
)
from tests.support.sessions.story import assert_sound, git, stored_events

PLAN = plan(instances=2, iterations=3)
VERDICTS = ("wrong", "prose", "correct 1.5")
CALLS = 10
"""Calls of two instances; each has a candidate, a reflection, two replies without code, and a candidate."""
STRIDE = 1 if SOAK else 13
"""Distance of the tested cuts in lines; each cut runs a whole session."""


@dataclass
class Resumed:
    """Events, calls and judged sources of a resumed engine."""

    events: list[Event]
    calls: list[str]
    judged: list[str]
    examined: list[str]


async def resumed_session(home: Home, client: ScriptedClient) -> Resumed:
    """Resume the session and run it to its end."""
    judge = ScriptedJudge()
    events = await resume_to_end(home, PLAN, client, judge, store=True)
    calls = [
        f"vector_add#{key.instance}/{key.attempt}/{key.role}/{key.n}"
        for key in (request.key for request in client.requests)
    ]
    return Resumed(events, calls, judge.evaluated, judge.examined)


def verdicts(events: list[Event]) -> dict[str, Verdict | None]:
    return {attempt.attempt: attempt.verdict for attempt in fold(events).attempts()}  # type: ignore[arg-type]


def confirmations(events: list[Event]) -> dict[str, Confirmation]:
    return {attempt.attempt: attempt.confirmation for attempt in fold(events).attempts()}  # type: ignore[arg-type]


@pytest.fixture
async def whole(tmp_path: Path) -> Home:
    """Home with the uninterrupted session."""
    home = Home(tmp_path / "whole")
    await play(home, scripted_model(*VERDICTS), session_plan=PLAN)
    return home


async def test_resume_after_any_line_gives_the_same_result(whole: Home, tmp_path: Path) -> None:
    uninterrupted = read_journal(whole.files(PLAN.session).journal).events
    lines = len(uninterrupted) - 1
    for count in range(2, lines + 1, STRIDE):
        home = Home(tmp_path / f"cut-{count}")
        first_events = cut(whole, home, PLAN.session, count)
        resumed = await resumed_session(home, scripted_model(*VERDICTS))
        assert verdicts(resumed.events) == verdicts(uninterrupted), f"after {count} lines"
        assert confirmations(resumed.events) == confirmations(uninterrupted), f"after {count} lines"
        paid = {event.call for event in first_events if isinstance(event, CallFinished)}
        assert not paid & set(resumed.calls), f"called again after {count} lines"
        assert len(paid) + len(resumed.calls) == CALLS
        judged_before = [event for event in first_events if isinstance(event, AttemptJudged)]
        assert len(judged_before) + len(resumed.judged) == 6, f"judged again after {count} lines"
        examined_before = [event for event in first_events if isinstance(event, WinnerExamined)]
        assert len(examined_before) + len(resumed.examined) == 2, f"examined again after {count} lines"
        for kind in (CallFinished, CandidateProposed, AttemptJudged, WinnerExamined, InstanceFinished):
            names = [str(event) for event in resumed.events if isinstance(event, kind)]
            assert len(names) == len(set(names))
        assert_store_is_whole(home, tmp_path / f"clone-{count}", resumed.events)
        shutil.rmtree(home.root)


def assert_store_is_whole(home: Home, clone: Path, events: list[Event]) -> None:
    assert_sound(home.store)
    git(home.store, "clone", "-q", "--bare", ".", str(clone))
    with Store.read_only(clone) as store:
        assert stored_events(store, PLAN.session) == events
    exams = [event for event in events if isinstance(event, WinnerExamined)]
    assert {exam.attempt for exam in exams} == {"vector_add#1/3", "vector_add#2/3"}
    assert all(exam.evaluation.exam for exam in exams)
    shutil.rmtree(clone)


async def test_resume_uses_old_replies_after_a_change_of_prompts(whole: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "changed")
    uninterrupted = read_journal(whole.files(PLAN.session).journal).events
    cut(whole, home, PLAN.session, len(uninterrupted) - 2)
    journal = home.files(PLAN.session).journal
    journal.write_bytes(journal.read_bytes().replace(b"# Request", b"# Older wording"))
    resumed = await resumed_session(home, scripted_model(*VERDICTS))
    assert resumed.calls == []
    notices = [event.message for event in resumed.events if isinstance(event, Notice)]
    assert len(notices) == 1
    assert "differs from the one in the journal" in notices[0]


async def test_resume_repeats_a_failed_call_under_its_name(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    bad = ScriptedClient(answer=lambda _: UselessToRetry("bad_key", "no"))
    with Recorder.begin(home, session_started(PLAN)) as recorder:
        assert await _run(recorder, bad) == ("vector_add#1", "vector_add#2")
    resumed = await resumed_session(home, scripted_model(*VERDICTS))
    for instance in ("vector_add#1", "vector_add#2"):
        first = next(call for call in resumed.calls if call.startswith(instance))
        assert first == f"{instance}/1/generator/1"
    assert [event.reason for event in resumed.events if isinstance(event, InstanceFinished)] == [
        "model_failed",
        "model_failed",
        "iterations",
        "iterations",
    ]


async def test_resume_applies_a_decision_made_while_stopped(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    session_plan = plan(iterations=2, review="manual")
    with Recorder.begin(home, session_started(session_plan)) as recorder:
        waiting = asyncio.create_task(_run(recorder, scripted_model("correct 1.0"), session_plan))
        await until(lambda: any(attempt.waiting for attempt in recorder.state.attempts()))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    with resume(home, PLAN.session) as recorder:
        await recorder.follow(DecisionMade(attempt="vector_add#1/1", accepted=False, why="unreadable"))
    client = scripted_model("correct 1.0")
    with resume(home, PLAN.session) as recorder:
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        engine_task = asyncio.create_task(run(shared(recorder, session_plan, client, ScriptedJudge())))
        await until(lambda: len(client.requests) == 2)
        assert "unreadable" in "".join(message.content for message in client.requests[-1].messages)
        engine_task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await engine_task


async def _run(
    recorder: Recorder, client: ScriptedClient, session_plan: SessionPlan = PLAN
) -> tuple[str, ...]:
    recorder.record(EngineStarted(host="here", pid=1))
    return await run(shared(recorder, session_plan, client, ScriptedJudge()))


async def test_same_source_is_judged_once_also_after_a_resume(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        if request.key.role is Role.REFLECTOR:
            return Reply(text="The cause.")
        return Reply(
            text=answer_of("wrong", "same").replace("\n```\n", "  \n" * request.key.attempt + "```\n")
        )

    whole, judge = Home(tmp_path / "whole"), ScriptedJudge()
    events = await play(whole, ScriptedClient(answer=answer), session_plan=PLAN, judge=judge)
    assert len(judge.evaluated) == PLAN.instances, "once in each instance"
    state = fold(events)
    firsts = {attempt.attempt: attempt.same_as for attempt in state.attempts()}
    assert [firsts[f"vector_add#2/{number}"] for number in (1, 2, 3)] == [
        "",
        "vector_add#2/1",
        "vector_add#2/1",
    ]
    assert state.attempt("vector_add#1/3").evaluation == state.attempt("vector_add#1/1").evaluation

    home = Home(tmp_path / "cut")
    judged = [
        index
        for index, event in enumerate(events)
        if isinstance(event, AttemptJudged) and event.attempt in ("vector_add#1/1", "vector_add#2/1")
    ]
    cut(whole, home, PLAN.session, judged[-1] + 1)
    resumed = await resumed_session(home, ScriptedClient(answer=answer))
    assert resumed.judged == []
    assert {attempt.attempt: attempt.same_as for attempt in fold(resumed.events).attempts()} == firsts
