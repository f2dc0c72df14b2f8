"""The tests of public benchmarks are recorded while a session runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from engine.judge import unrecorded
from engine.judge.unrecorded import record_tests
from engine.methods import open_method
from engine.plan.job import session_started
from engine.process.process import remaining_plan
from engine.run.scheduler import run_instances
from harness import DevicePool, target
from harness.recording.errors import NotRecorded
from harness.wire.errors import NoDeviceLeft, WorkerDied
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
Recording = Callable[[str], Awaitable[Task]]


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

    def run(self, recorder: Recorder) -> asyncio.Task[tuple[str, ...]]:
        recorder.record(EngineStarted(host="here", pid=1))
        names = [public(name.partition("/")[2]) for name in PLAN.to_record]
        later = record_tests(names, recorder, self.pool, target("gfx942"), Path("suites.toml"))
        work = shared(recorder, PLAN, scripted_model("correct 1.5"), ScriptedJudge())
        return asyncio.create_task(
            run_instances(work, open_method(PLAN.method), [load_task("vector_add")], later)
        )


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
        events = read_journal(recorder.live.journal).events
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
        events = read_journal(recorder.live.journal).events
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


async def test_session_without_a_device_stops(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = ScriptedTests(monkeypatch)
    with Recorder.begin(home, session_started(PLAN)) as recorder:
        run = tests.run(recorder)
        await until(lambda: len(tests.ready) == 2)
        tests.ready["starter/softmax"].set_exception(NoDeviceLeft("every GPU of this run failed"))
        with pytest.raises(ExceptionGroup) as raised:
            await run
    assert raised.group_contains(NoDeviceLeft)


async def test_half_of_the_slots_record(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = ScriptedTests(monkeypatch, slots=2)
    with Recorder.begin(home, session_started(PLAN)) as recorder:
        run = tests.run(recorder)
        await until(
            lambda: (
                "vector_add#1" in recorder.state.instances
                and recorder.state.instances["vector_add#1"].finished
            )
        )
        assert list(tests.ready) == ["starter/softmax"]
        for name in PLAN.to_record:
            await until(lambda name=name: name in tests.ready)
            tests.ready[name].set_result(None)
        await run
