"""The tests of public benchmarks are recorded while a session runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from engine.errors import UsageProblem
from engine.judge import unrecorded
from engine.judge.unrecorded import record_tests
from engine.methods import open_method
from engine.plan.job import session_started
from engine.plan.plan import SessionPlan
from engine.process.process import remaining_plan
from engine.run.scheduler import run_instances
from harness import DevicePool, target
from harness.wire.errors import NotRecorded, WorkerDied
from sessions import Home, Recorder, fold
from sessions.events import EngineStarted, InstanceStarted, TaskLeftOut
from sessions.journal.journal import read_journal
from suites import Task, load_task
from suites.public.task import PublicTask, SuiteKind
from tests.support.engine.engines import ScriptedJudge, plan, scripted_model, shared, until

PLAN = plan(
    tasks=("starter/vector_add", "starter/softmax", "starter/flip"),
    to_record=("starter/softmax", "starter/flip"),
    iterations=1,
)
ALL_UNRECORDED = msgspec.structs.replace(PLAN, to_record=PLAN.tasks)


def public(name: str) -> PublicTask:
    return PublicTask(
        suite="starter",
        kind=SuiteKind.TRITONBENCH_G,
        name=name,
        file=f"{name}.py",
        title=name,
        folder=Path("/"),
    )


class ScriptedTests:
    """Replaces `find_or_record`: the test of a task is recorded when its future is resolved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, slots: int = 8) -> None:
        self.ready: dict[str, asyncio.Future[None]] = {}
        self.pool = cast("DevicePool", SimpleNamespace(slots=slots))
        monkeypatch.setattr(unrecorded, "find_or_record", self.find_or_record)

    async def find_or_record(self, public: PublicTask, *_: object, **__: object) -> Task:
        self.ready[public.id] = asyncio.get_running_loop().create_future()
        await self.ready[public.id]
        return load_task(public.id)

    def run(self, recorder: Recorder, session: SessionPlan = PLAN) -> asyncio.Task[tuple[str, ...]]:
        recorder.record(EngineStarted(host="here", pid=1))
        work = shared(recorder, session, scripted_model("correct 1.5"), ScriptedJudge())
        later = record_tests(
            [public(name.partition("/")[2]) for name in session.to_record],
            recorder=recorder,
            budget=work.budget,
            pool=self.pool,
            target=target("gfx942"),
            registry=Path("suites.toml"),
        )
        ready = [load_task(name) for name in session.tasks if name not in session.to_record]
        return asyncio.create_task(run_instances(work, open_method(session.method), ready, later))


async def test_each_task_begins_when_its_own_test_is_recorded(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = ScriptedTests(monkeypatch)
    with Recorder.begin(home, session_started(PLAN)) as recorder:
        run, state = tests.run(recorder), recorder.state
        await until(lambda: "vector_add#1" in state.instances and state.instances["vector_add#1"].finished)
        assert [step.step for step in state.preparing] == [
            "recording the test of softmax",
            "recording the test of flip",
        ]
        tests.ready["starter/flip"].set_result(None)
        await until(lambda: "flip#1" in state.instances and state.instances["flip#1"].finished)
        assert [step.step for step in state.preparing] == ["recording the test of softmax"]
        assert not run.done()
        tests.ready["starter/softmax"].set_result(None)
        await run
        assert not state.preparing
        events = read_journal(recorder.files.journal).events
    starts = [event.task for event in events if isinstance(event, InstanceStarted)]
    assert starts == ["starter/vector_add", "starter/flip", "starter/softmax"]


@pytest.mark.parametrize(
    "failure", [NotRecorded("complex64 is no dtype"), WorkerDied("lost"), OSError("full")]
)
async def test_task_that_cannot_be_judged_is_left_out(
    home: Home, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    tests = ScriptedTests(monkeypatch)
    with Recorder.begin(home, session_started(PLAN)) as recorder:
        run, state = tests.run(recorder), recorder.state
        await until(lambda: len(tests.ready) == 2)
        tests.ready["starter/softmax"].set_exception(failure)
        tests.ready["starter/flip"].set_result(None)
        await run
        events = read_journal(recorder.files.journal).events
    (left_out,) = [event for event in events if isinstance(event, TaskLeftOut)]
    assert (left_out.task, str(failure) in left_out.why) == ("starter/softmax", True)
    assert fold(events).tasks() == ["starter/vector_add", "starter/flip"]
    assert {instance.finished for instance in state.instances.values()} == {"iterations"}
    assert not state.preparing
    remaining = remaining_plan(PLAN, state)
    assert (remaining.tasks, remaining.to_record) == (("starter/vector_add", "starter/flip"), ())


async def test_a_resumed_session_records_only_what_did_not_begin(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = ScriptedTests(monkeypatch)
    with Recorder.begin(home, session_started(PLAN)) as recorder:
        run = tests.run(recorder)
        await until(lambda: len(tests.ready) == 2)
        tests.ready["starter/flip"].set_result(None)
        await until(lambda: "flip#1" in recorder.state.instances)
        run.cancel()
        await asyncio.wait([run])
        remaining = remaining_plan(PLAN, recorder.state)
    assert (remaining.tasks, remaining.to_record) == (PLAN.tasks, ("starter/softmax",))
    assert msgspec.json.decode(msgspec.json.encode(PLAN), type=type(PLAN)) == PLAN


async def test_every_slot_records_and_the_screens_say_how_many_tests_wait(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = ScriptedTests(monkeypatch, slots=2)
    with Recorder.begin(home, session_started(ALL_UNRECORDED)) as recorder:
        run, state = tests.run(recorder, ALL_UNRECORDED), recorder.state
        await until(lambda: len(tests.ready) == 2)
        assert [step.step for step in state.preparing] == [
            "recording the test of vector_add",
            "recording the test of softmax",
            "tests that wait to be recorded: 1",
        ]
        for name in ALL_UNRECORDED.to_record:
            await until(lambda name=name: name in tests.ready)
            tests.ready[name].set_result(None)
        await run
        assert {instance.finished for instance in state.instances.values()} == {"iterations"}


async def test_session_in_which_no_task_can_be_judged_ends_with_an_error(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = ScriptedTests(monkeypatch)
    with Recorder.begin(home, session_started(ALL_UNRECORDED)) as recorder:
        run = tests.run(recorder, ALL_UNRECORDED)
        await until(lambda: len(tests.ready) == 3)
        for name, test in tests.ready.items():
            test.set_exception(NotRecorded(f"{name} has complex results"))
        with pytest.raises(UsageProblem, match="no task of this session can be judged"):
            await run
        warnings = [words for level, words in recorder.state.notices if level == "warning"]
        remaining = remaining_plan(ALL_UNRECORDED, recorder.state)
    assert warnings == [f"{name} is left out: {name} has complex results" for name in tests.ready]
    assert (remaining.tasks, remaining.to_record) == ((), ())


async def test_recording_ends_with_the_wall_time_of_the_session(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = ScriptedTests(monkeypatch)
    short = msgspec.structs.replace(PLAN, budget_wall_s=0.2)
    with Recorder.begin(home, session_started(short)) as recorder:
        await tests.run(recorder, short)
        left_out = [words for level, words in recorder.state.notices if level == "warning"]
    assert len(left_out) == 2
    assert all("is left out: the session ran for 0.2 s" in words for words in left_out)
