"""Protects agents' work against SIGKILL of the engine at any moment: no candidate is lost, none is judged twice, budgets hold.

Engines, agents and MCP servers are processes of their own; the judge is scripted.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Any

import psutil
import pytest

from engine.agents.desk import AgentDesk
from engine.errors import EngineError
from engine.plan.request import RunPlan
from engine.process import launch
from sessions import Home, fold
from sessions.engine_info import read_engine_info
from sessions.events import AttemptJudged, EngineStarted, Event, SessionFinished
from sessions.state.state import SessionState
from suites import baseline_source, load_task
from tests.faults.promises import assert_nothing_is_there_twice
from tests.support.command_line import ROOT
from tests.support.engine import judgeless_engine
from tests.support.engine.live_engines import journal, started, until_left
from tests.support.sessions.story import assert_sound
from tests.support.waiting import LIMIT_S, await_until, wait_until

pytestmark = pytest.mark.soak
AGENT = ROOT / "tests" / "support" / "engine" / "scripted_agent.py"
RIGHT = baseline_source(load_task("vector_add"))
KEY = "vector_add#1"
KILLS = 34
"""Kills of each of the two sessions."""
EVALUATIONS = 150
"""More than the session judges between the kills, on most machines."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "ENGINE", judgeless_engine.__name__)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("KERNEL", str(load_task("vector_add").folder / "baseline.py"))


def test_an_agent_that_the_engine_starts(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    command = f"{quote(sys.executable)} {quote(str(AGENT))} steady {{prompt}}"
    plan = RunPlan(method="agent", agent_command=command, **COMMON)
    with started(plan, home) as session:
        kills = kill_and_resume(home, session, random.Random(1))
        # The servers of the killed engines are gone, though the session runs.
        wait_until(lambda: len(processes_of(session, "mcp")) <= 1, "the end of the servers")
        assert home.files(session).running
        until_left(home, session)
    assert_work_is_whole(home, session, kills)
    wait_until(lambda: not processes_of(session), "the end of all processes")


async def test_an_agent_at_the_mcp_desk(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.ensure()
    desk = AgentDesk(home, RunPlan(method="agent", **COMMON))
    acknowledged = set[str]()

    async def ignore(_: str) -> None: ...

    async def work() -> None:
        for number in count():
            source = f"{RIGHT}\n# {number}\n"
            while True:
                try:
                    answer = await desk.evaluate("vector_add", source, "", agent="test", on_progress=ignore)
                except EngineError as refusal:
                    if "evaluations are used" in str(refusal) or "is finished" in str(refusal):
                        return
                    await asyncio.sleep(0.05)
                    continue
                assert answer.judged
                acknowledged.add(source)
                break

    working = asyncio.create_task(work())
    await await_until(
        lambda: any(live.journal.exists() for live in home.session_folders()), "the engine's journal"
    )
    session = home.session_folders()[0].session
    kills = await asyncio.to_thread(kill_and_resume, home, session, random.Random(2))
    await asyncio.wait_for(working, LIMIT_S)
    await desk.close()
    await asyncio.to_thread(until_left, home, session)
    events = assert_work_is_whole(home, session, kills)
    assert acknowledged <= {attempt.source for attempt in fold_of(events).attempts()}


COMMON: dict[str, Any] = {
    "tasks": ("vector_add",),
    "instances": 1,
    "devices": ("cpu",),
    "iterations": EVALUATIONS,
    "seed": 7,
}


def kill_and_resume(home: Home, session: str, moments: random.Random) -> int:
    """Kill the engine at random moments and resume it, up to `KILLS` times; returns the number of kills."""
    live = home.files(session)
    for kills in range(KILLS):
        # Mostly in the midst of judging; sometimes while the engine starts.
        wanted = len(journal(home, session)) + moments.randrange(25)
        limit = time.monotonic() + 10
        while live.running and len(journal(home, session)) < wanted and time.monotonic() < limit:
            time.sleep(0.005)
        time.sleep(moments.random() * 0.1)
        info = read_engine_info(live)
        if info is not None and live.running:
            os.kill(info.pid, signal.SIGKILL)
        until_left(home, session)
        before = journal(home, session)
        if isinstance(before[-1], SessionFinished):
            return kills
        launch.resume(home, session)
        assert journal(home, session)[: len(before)] == before, "events on disk do not change"
    return KILLS


def assert_work_is_whole(home: Home, session: str, kills: int) -> list[Event]:
    """All evaluations of the budget are used, each candidate has one verdict, and only a kill repeats a judging."""
    events = journal(home, session)
    assert isinstance(events[-1], SessionFinished)
    assert kills >= min(KILLS, 20), "the session ended too early to test anything"
    state = fold_of(events)
    assert_nothing_is_there_twice(events)
    attempts = state.attempts()
    assert [attempt.number for attempt in attempts] == list(range(1, EVALUATIONS + 1))
    assert {attempt.verdict for attempt in attempts} == {"correct"}
    sent = state.sent_to(KEY)
    if sent:
        assert [entry.source for entry in sent] == [attempt.source for attempt in attempts]
    verdicts = [event for event in events if isinstance(event, AttemptJudged) and not event.same_as]
    assert judgeless_engine.evaluations(home) <= len(verdicts) + 1 + kills  # one more for the exam
    assert sum(isinstance(event, EngineStarted) for event in events) <= kills + 1
    assert_sound(home.store)
    return events


def fold_of(events: list[Event]) -> SessionState:
    return fold(events)  # type: ignore[arg-type]


def processes_of(session: str, word: str = "") -> list[list[str]]:
    """The command lines with the session in them, and with this word."""
    lines = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            lines.append(process.cmdline())
    return [line for line in lines if any(session in part for part in line) and (not word or word in line)]
