"""Resume, from every moment at which an engine can have ended: each line of a whole session's journal in turn."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.errors import UselessToRetry
from engine.job import session_started
from engine.models import ScriptedClient
from engine.plan import SessionPlan
from engine.reviewing import Decisions
from harness import Verdict
from sessions import Home, Recorder, fold, resume
from sessions.errors import NothingToResume
from sessions.events import (
    AttemptJudged,
    CallFinished,
    CandidateProposed,
    DecisionMade,
    EngineStarted,
    Event,
    InstanceFinished,
    Message,
    Notice,
    SessionFinished,
    WinnerExamined,
)
from sessions.journal import read_journal
from sessions.state import Confirmation
from sessions.store import Store
from tests.conftest import SOAK
from tests.support.engines import ToldJudge, plan, play, run, shared, told, until

PLAN = plan(instances=2, iterations=3)
VERDICTS = ("wrong", "prose", "correct 1.5")
CALLS = 10
"""Two instances: a candidate and its reflection, two replies without code, a candidate."""
STRIDE = 1 if SOAK else 3
"""Every third line by default: each is a session of its own."""


@dataclass
class Resumed:
    """What a resumed engine did."""

    events: list[Event]
    asked: list[str]
    judged: list[str]
    examined: list[str]


async def go_on(home: Home, client: ScriptedClient) -> Resumed:
    """Resume the session and run it to its end."""
    judge = ToldJudge()
    with resume(home, PLAN.session) as recorder:
        before = read_journal(recorder.live.journal).events
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        await run(shared(recorder, PLAN, client, judge, Decisions(before)))
        recorder.record(SessionFinished())
        events = list(read_journal(recorder.live.journal).events)
        await recorder.finish()
    asked = [
        f"vector_add#{key.instance}/{key.attempt}/{key.role}/{key.n}"
        for key in (request.key for request in client.requests)
    ]
    return Resumed(events, asked, judge.evaluated, judge.examined)


def cut(whole: Home, home: Home, lines: int, torn: bytes = b"") -> list[Event]:
    """A home whose engine ended after so many lines of the journal; what it held."""
    live = home.live(PLAN.session)
    live.folder.mkdir(parents=True)
    kept = whole.live(PLAN.session).journal.read_bytes().splitlines(keepends=True)[:lines]
    live.journal.write_bytes(b"".join(kept) + torn)
    return list(read_journal(live.journal).events)


def verdicts(events: list[Event]) -> dict[str, Verdict | None]:
    return {attempt.attempt: attempt.verdict for attempt in fold(events).attempts()}  # type: ignore[arg-type]


def confirmations(events: list[Event]) -> dict[str, Confirmation]:
    return {attempt.attempt: attempt.confirmation for attempt in fold(events).attempts()}  # type: ignore[arg-type]


@pytest.fixture
async def whole(tmp_path: Path) -> Home:
    """A home with the whole session, undisturbed."""
    home = Home(tmp_path / "whole")
    await play(home, told(*VERDICTS), of=PLAN)
    return home


async def test_from_every_moment_the_session_ends_as_it_would_have(whole: Home, tmp_path: Path) -> None:
    undisturbed = read_journal(whole.live(PLAN.session).journal).events
    lines = len(undisturbed) - 1
    for count in range(2, lines + 1, STRIDE):
        home = Home(tmp_path / f"cut-{count}")
        held = cut(whole, home, count)
        resumed = await go_on(home, told(*VERDICTS))
        assert verdicts(resumed.events) == verdicts(undisturbed), f"after {count} lines"
        assert confirmations(resumed.events) == confirmations(undisturbed), f"after {count} lines"
        paid = {event.call for event in held if isinstance(event, CallFinished)}
        assert not paid & set(resumed.asked), f"asked again after {count} lines"
        assert len(paid) + len(resumed.asked) == CALLS
        known = [event for event in held if isinstance(event, AttemptJudged)]
        assert len(known) + len(resumed.judged) == 6, f"judged again after {count} lines"
        held_before = [event for event in held if isinstance(event, WinnerExamined)]
        assert len(held_before) + len(resumed.examined) == 2, f"examined again after {count} lines"
        for kind in (CallFinished, CandidateProposed, AttemptJudged, WinnerExamined, InstanceFinished):
            names = [str(event) for event in resumed.events if isinstance(event, kind)]
            assert len(names) == len(set(names))
        assert_store_is_whole(home, tmp_path / f"clone-{count}", resumed.events)
        shutil.rmtree(home.root)


def assert_store_is_whole(home: Home, clone: Path, events: list[Event]) -> None:
    subprocess.run(["git", "-C", str(home.store), "fsck", "--strict"], check=True, capture_output=True)
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(home.store), str(clone)], check=True, capture_output=True
    )
    with Store.read_only(clone) as store:
        assert store.session_events(PLAN.session) == events
        for number in (1, 2):
            assert f"exams/starter/vector_add/{number}/3.json" in store.session_tree(PLAN.session)
    shutil.rmtree(clone)


async def test_a_torn_last_line_is_done_again(whole: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "torn")
    cut(whole, home, 9, torn=b'{"type":"call_fin')
    resumed = await go_on(home, told(*VERDICTS))
    assert any("was incomplete" in event.message for event in resumed.events if isinstance(event, Notice))
    assert list(verdicts(resumed.events).values()) == [Verdict.WRONG, Verdict.NO_CODE, Verdict.CORRECT] * 2


async def test_replies_count_though_prompts_are_built_differently_now(whole: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "changed")
    undisturbed = read_journal(whole.live(PLAN.session).journal).events
    cut(whole, home, len(undisturbed) - 2)
    journal = home.live(PLAN.session).journal
    journal.write_bytes(journal.read_bytes().replace(b"# Request", b"# Older wording"))
    resumed = await go_on(home, told(*VERDICTS))
    assert resumed.asked == []
    notices = [event.message for event in resumed.events if isinstance(event, Notice)]
    assert len(notices) == 1
    assert "differs from the one in the journal" in notices[0]


async def test_a_failed_call_is_asked_again_under_its_own_name(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    bad = ScriptedClient(answer=lambda _: UselessToRetry("bad_key", "no"))
    with Recorder.begin(home, session_started(PLAN)) as recorder:
        assert await _run(recorder, bad) == ("vector_add#1", "vector_add#2")
    resumed = await go_on(home, told(*VERDICTS))
    assert resumed.asked[:2] == ["vector_add#1/1/generator/1", "vector_add#2/1/generator/1"]
    assert [event.reason for event in resumed.events if isinstance(event, InstanceFinished)] == [
        "model_failed",
        "model_failed",
        "iterations",
        "iterations",
    ]


async def test_a_decision_made_while_nothing_ran_is_acted_on(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    of = plan(iterations=2, review="manual")
    with Recorder.begin(home, session_started(of)) as recorder:
        waiting = asyncio.create_task(_run(recorder, told("correct 1.0"), of))
        await until(lambda: any(attempt.waiting for attempt in recorder.state.attempts()))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    with resume(home, PLAN.session) as recorder:
        await recorder.decide(DecisionMade(attempt="vector_add#1/1", accepted=False, why="unreadable"))
    client = told("correct 1.0")
    with resume(home, PLAN.session) as recorder:
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        decisions = Decisions(read_journal(recorder.live.journal).events)
        going = asyncio.create_task(run(shared(recorder, of, client, ToldJudge(), decisions)))
        await until(lambda: len(client.requests) == 2)
        assert "unreadable" in "".join(message.content for message in _last(client))
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going


async def test_a_finished_session_is_not_resumed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await play(home, told(*VERDICTS), of=PLAN)
    with pytest.raises(NothingToResume, match="wavedeck replay"):
        resume(home, PLAN.session)


def _last(client: ScriptedClient) -> tuple[Message, ...]:
    return client.requests[-1].messages


async def _run(recorder: Recorder, client: ScriptedClient, of: SessionPlan = PLAN) -> tuple[str, ...]:
    recorder.record(EngineStarted(host="here", pid=1))
    return await run(shared(recorder, of, client, ToldJudge()))
