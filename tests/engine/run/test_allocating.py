"""`--allocate best`: iterations move from solved and hopeless tasks to other tasks."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from engine.models import Reply, Request, ScriptedClient
from engine.plan.plan import SessionPlan
from engine.run.person import Changes
from harness import Evaluation
from sessions import Home, Recorder, fold
from sessions.events import (
    InstanceFinished,
    InstanceForked,
    IterationsMoved,
    RetireAsked,
    Role,
    SessionExtended,
)
from sessions.settings import StopRules
from sessions.state.state import SessionState
from suites import Task
from tests.support.engine.engines import (
    ScriptedJudge,
    answer_of,
    candidate,
    cut,
    plan,
    play,
    resume_to_end,
    until,
)
from tests.support.engine.steering import Table

TASKS = ("starter/vector_add", "starter/softmax")


def model(**verdicts: str) -> ScriptedClient:
    """Return a model whose candidates of a task always get this verdict."""

    def answer(request: Request) -> Reply:
        key = request.key
        if key.role is Role.REFLECTOR:
            return Reply(text="Cause.")
        verdict = verdicts[key.task.partition("/")[2]]
        return Reply(text=answer_of(verdict, f"{key.task}.{key.instance}.{key.attempt}.{key.n}"))

    return ScriptedClient(answer=answer)


def made(state: SessionState, task: str) -> int:
    return sum(len(instance.attempts) for instance in state.instances.values() if instance.task == task)


async def test_iterations_of_a_hopeless_task_move_to_another(home: Home) -> None:
    session_plan = plan(tasks=TASKS, instances=2, iterations=8, allocate="best")
    events = await play(home, model(vector_add="wrong", softmax="correct 1.0"), session_plan=session_plan)
    state = fold(events)
    assert 10 <= made(state, TASKS[0]) <= 11
    assert made(state, TASKS[0]) + made(state, TASKS[1]) == 32, "no iteration is lost"
    assert {(TASKS[0], "hopeless"), (TASKS[1], "iterations")} <= {
        (event.task, event.reason) for event in events if isinstance(event, InstanceFinished)
    }
    assert all(instance.finished for instance in state.instances.values())


async def test_iterations_of_a_solved_task_move_to_another(home: Home) -> None:
    session_plan = plan(tasks=TASKS, instances=1, iterations=4, allocate="best", stop=StopRules(speedup=2.0))
    events = await play(
        home, model(vector_add="correct 2.5", softmax="correct 1.0"), session_plan=session_plan
    )
    [moved] = [event for event in events if isinstance(event, IterationsMoved)]
    assert (moved.source, moved.to, moved.iterations) == ("vector_add#1", "softmax#1", 3)
    state = fold(events)
    assert (made(state, TASKS[0]), made(state, TASKS[1])) == (1, 7)
    assert state.phases("softmax#1") == (4, 3)


async def test_last_hopeless_task_uses_all_iterations(home: Home) -> None:
    session_plan = plan(tasks=TASKS, instances=2, iterations=8, allocate="best")
    events = await play(home, model(vector_add="wrong", softmax="wrong"), session_plan=session_plan)
    state = fold(events)
    assert made(state, TASKS[0]) + made(state, TASKS[1]) == 32
    assert all(instance.finished for instance in state.instances.values())


class WaitingJudge(ScriptedJudge):
    """Judge that holds exams and edits until `vector_add#1` began its 11th attempt, or ended."""

    def __init__(self) -> None:
        super().__init__()
        self.in_exam = asyncio.Event()
        self.state = SessionState()

    async def evaluate(self, source: str, task: Task, *, exam: bool = False, **options: Any) -> Evaluation:
        giver = self.state.instances.get("vector_add#1")
        if exam or "edit" in source:
            assert giver is not None
            self.in_exam.set()
            await until(lambda: giver.finished or len(giver.attempts) > 10)
        elif giver is not None and task.id == giver.task and len(giver.attempts) == 10:
            await self.in_exam.wait()
        return await super().evaluate(source, task, exam=exam, **options)


async def test_instance_in_the_exam_after_a_stop_rule_gets_no_iterations(home: Home) -> None:
    judge = WaitingJudge()

    def watch(recorder: Recorder, _: Changes) -> None:
        judge.state = recorder.state

    session_plan = plan(tasks=TASKS, iterations=12, allocate="best", stop=StopRules(speedup=2.0))
    client = model(vector_add="wrong", softmax="correct 2.5")
    state = fold(await play(home, client, session_plan=session_plan, judge=judge, before=watch))
    assert (made(state, TASKS[0]), made(state, TASKS[1])) == (12, 1)
    assert not state.extensions


async def test_edit_of_a_person_gets_no_iterations(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(tasks=TASKS, iterations=12, allocate="best"), "wrong")
    judge = table.judge = WaitingJudge()

    def edit() -> None:
        assert table.recorder is not None
        judge.state = table.recorder.state
        table.command(RetireAsked(instance="softmax#1"))
        table.command(InstanceForked(base="softmax#1/1", source=candidate("wrong", "edit")))

    table.acts["1/8"] = edit
    state = fold(await table.play())
    assert (made(state, TASKS[0]), len(state.instances["softmax#2"].attempts)) == (12, 1)
    assert not state.extensions


async def test_iterations_stay_where_they_are_by_default(home: Home) -> None:
    session_plan = plan(tasks=TASKS, instances=2, iterations=8)
    events = await play(home, model(vector_add="wrong", softmax="correct 1.0"), session_plan=session_plan)
    state = fold(events)
    assert (made(state, TASKS[0]), made(state, TASKS[1])) == (16, 16)


async def test_resumed_session_makes_the_same_number_of_attempts(home: Home, tmp_path: Path) -> None:
    session_plan = plan(tasks=TASKS, instances=2, iterations=6, allocate="best")
    verdicts = {"vector_add": "wrong", "softmax": "correct 1.0"}
    events = await play(home, model(**verdicts), session_plan=session_plan)
    [first, *_] = [number for number, event in enumerate(events) if isinstance(event, IterationsMoved)]
    for lines in (first, first + 1, first + 9):
        again = Home(tmp_path / str(lines))
        cut(home, again, session_plan.session, lines)
        attempts = len(fold(await resume_to_end(again, session_plan, model(**verdicts))).attempts())
        # A crash between the end of an instance and the move of its iterations loses them.
        assert attempts == 24 if lines > first else 10 <= attempts <= 24


async def test_gift_is_made_once_if_the_engine_dies_at_the_end_of_an_instance(tmp_path: Path) -> None:
    session_plan = plan(tasks=TASKS, instances=1, iterations=4, allocate="best", stop=StopRules(speedup=2.0))
    client = model(vector_add="correct 2.5", softmax="correct 1.0")
    events = await play(Home(tmp_path / "whole"), client, session_plan=session_plan)
    [gift] = [event.seq for event in events if isinstance(event, IterationsMoved)]
    for last in range(gift - 1, gift + 2):
        again = Home(tmp_path / f"cut-{last}")
        cut(Home(tmp_path / "whole"), again, session_plan.session, last)
        state = fold(await resume_to_end(again, session_plan, client))
        assert (made(state, TASKS[0]), made(state, TASKS[1])) == (1, 7), f"after {last} lines"


async def test_extended_giver_makes_only_the_iterations_of_the_extension(tmp_path: Path) -> None:
    session_plan = plan(tasks=TASKS, iterations=6, allocate="best", stop=StopRules(without_gain=2))
    client = model(vector_add="correct 1.0", softmax="wrong")
    for table in (
        Table(tmp_path / "whole", session_plan),
        await killed_at_the_gift(tmp_path, session_plan, client),
    ):
        table.command_at_rest(SessionExtended(iterations=1))
        state = fold(await resume_to_end(table.home, session_plan, client))
        assert (made(state, TASKS[0]), made(state, TASKS[1])) == (4, 10)
        assert state.phases("vector_add#1") == (3, 1)
        assert all(instance.finished for instance in state.instances.values())


async def killed_at_the_gift(folder: Path, session_plan: SessionPlan, client: ScriptedClient) -> Table:
    """Return a session that `vector_add#1` gave its iterations in, just before the end of this instance is recorded."""
    whole, table = Home(folder / "whole"), Table(folder / "cut", session_plan)
    events = await play(whole, client, session_plan=session_plan)
    [gift] = [event for event in events if isinstance(event, IterationsMoved)]
    assert gift.source == "vector_add#1"
    cut(whole, table.home, session_plan.session, gift.seq)
    return table


async def test_no_event_of_an_instance_is_synced_in_the_event_loop(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, fdatasync = [], os.fdatasync

    def sync(descriptor: int) -> None:
        threads.append(threading.current_thread())
        fdatasync(descriptor)

    session_plan = plan(tasks=TASKS, instances=1, iterations=4, allocate="best", stop=StopRules(speedup=2.0))
    events = await play(
        home,
        model(vector_add="correct 2.5", softmax="correct 1.0"),
        session_plan=session_plan,
        before=lambda *_: monkeypatch.setattr("sessions.journal.journal.os.fdatasync", sync),
    )
    assert any(isinstance(event, IterationsMoved) for event in events)
    *of_instances, _finished, _closed = threads
    assert of_instances
    assert threading.main_thread() not in of_instances
