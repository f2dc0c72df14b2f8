"""A person extends a session, forks an attempt, or gives a kernel of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.plan.prices import Price
from harness import Evaluation
from sessions import fold
from sessions.events import InstanceFinished, InstanceForked, Origin, SessionExtended
from sessions.settings import MethodOptions, StopRules
from sessions.state.state import Confirmation
from tests.support.engine.engines import candidate, plan, until
from tests.support.engine.steering import Table, attempts_of, prompts, refused, repeats_its_prompts, said


@pytest.mark.parametrize("method", ["geak", "geak-evolve", "kernelagent"])
@pytest.mark.parametrize("when", ["while it runs", "after its end"])
async def test_extended_session_makes_the_first_attempts_as_before(
    tmp_path: Path, method: str, when: str
) -> None:
    session_plan = plan(
        method=method, iterations=3, options=MethodOptions(workers=2, descendants=2), instances=2
    )
    table = Table(tmp_path, session_plan, "wrong")
    if when == "while it runs":
        table.acts["1/2/generator"] = lambda: table.command(SessionExtended(iterations=2))
        events = await table.play()
    else:
        first = await table.play()
        table.command_at_rest(SessionExtended(iterations=2))
        events = await table.play()
        assert prompts(first).items() <= prompts(events).items()
    assert attempts_of(events) == {"vector_add#1": 5, "vector_add#2": 5}
    assert repeats_its_prompts(events)


async def test_instance_that_ended_goes_on_in_a_running_session(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(instances=2, iterations=1), "correct 1.0", "correct 2.0")

    held = table.hold["2/1/generator"] = asyncio.Event()
    engine = asyncio.create_task(table.play())
    await until(lambda: table.ended("vector_add#1"))
    table.command(SessionExtended(iterations=1))
    held.set()
    events = await engine
    assert attempts_of(events) == {"vector_add#1": 2, "vector_add#2": 2}
    assert fold(events).instances["vector_add#1"].best == "vector_add#1/2"
    ended = [event.reason for event in events if isinstance(event, InstanceFinished)]
    assert ended == ["iterations"] * 3


async def test_extension_during_the_exam_opens_an_instance_that_met_a_stop_rule(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=4, stop=StopRules(speedup=1.2)), "correct 1.5")
    pass_exam = table.judge.exam

    def extend(source: str) -> Evaluation:
        table.judge.exam = pass_exam
        table.command(SessionExtended(iterations=1))
        return pass_exam(source)

    table.judge.exam = extend
    events = await table.play()
    assert attempts_of(events) == {"vector_add#1": 5}


@pytest.mark.parametrize(
    ("method", "verdict", "iterations", "words"),
    [
        ("direct", "wrong", 1, "takes no further iterations"),
        ("reflexion", "correct", 1, "no instance can use more iterations"),
        ("geak", "wrong", 0, "nothing to extend by"),
        ("geak", "wrong", -1, "--iterations must be from 1"),
    ],
)
async def test_extension_that_no_instance_can_use_is_refused(
    tmp_path: Path, method: str, verdict: str, iterations: int, words: str
) -> None:
    events = await Table(tmp_path, plan(method=method, iterations=1), verdict).play()
    refused(events, words, SessionExtended(iterations=iterations))


async def test_larger_budget_lets_an_instance_go_on(tmp_path: Path) -> None:
    """A call of the scripted model reserves about 0.33 USD at this price and costs 0.0001."""
    session_plan = plan(
        iterations=3, budget_usd=0.01, prices={"scripted:test": Price(input=1.0, output=10.0)}
    )
    table = Table(tmp_path, session_plan, "correct 1.0")
    events = await table.play()
    assert fold(events).instances["vector_add#1"].finished == "budget"
    table.command_at_rest(SessionExtended(budget_usd=5.0))
    events = await table.play()
    assert fold(events).instances["vector_add#1"].finished == "iterations"
    assert attempts_of(events) == {"vector_add#1": 3}
    refused(events, "nothing to extend by", SessionExtended())
    unlimited = await Table(tmp_path / "other", plan(iterations=1), "correct 1.0").play()
    refused(unlimited, "no budget in USD", SessionExtended(budget_usd=5.0))


async def test_extension_goes_past_a_stop_rule(tmp_path: Path) -> None:
    session_plan = plan(iterations=5, stop=StopRules(without_gain=2))
    table = Table(tmp_path, session_plan, "correct 2.0", "correct 1.0")
    assert fold(await table.play()).instances["vector_add#1"].finished == "no_gain"
    table.command_at_rest(SessionExtended(iterations=1))
    instance = fold(await table.play()).instances["vector_add#1"]
    assert (instance.finished, len(instance.attempts)) == ("iterations", 6)


async def test_start_of_a_person_is_kept_when_its_file_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(candidate("correct 1.5", "mine"), encoding="utf-8")
    table = Table(tmp_path, plan(iterations=2, options=MethodOptions(start=str(file))), "correct 2.0")
    await table.play(kill_at="1/2/optimizer")
    file.unlink()
    events = await table.play()
    first, *others = fold(events).attempts()
    assert (first.origin, first.source) == (Origin.HUMAN, candidate("correct 1.5", "mine"))
    assert [attempt.origin for attempt in others] == [Origin.OPTIMIZE] * 2
    assert [attempt.base for attempt in others] == ["vector_add#1/1", "vector_add#1/2"]


@pytest.mark.parametrize("method", ["geak", "geak-evolve", "kernelagent"])
async def test_fork_goes_on_from_the_attempt_with_its_hint(tmp_path: Path, method: str) -> None:
    session_plan = plan(method=method, iterations=2, options=MethodOptions(workers=1, descendants=1))
    table = Table(tmp_path, session_plan, "wrong")
    table.acts["1/2/generator"] = lambda: table.command(
        InstanceForked(base="vector_add#1/1", hint="Use masks.")
    )
    before = await table.play(kill_at="2/1/generator")
    assert attempts_of(before)["vector_add#2"] == 2
    events = await table.play()
    first, second, third = fold(events).instances["vector_add#2"].attempts
    origins = [(first.origin, first.base), (second.origin, second.base), (third.origin, third.base)]
    assert origins == [
        (Origin.FORK, "vector_add#1/1"),
        (Origin.REPAIR, first.attempt),
        (Origin.REPAIR, second.attempt),
    ]
    assert first.source == fold(events).attempt("vector_add#1/1").source
    assert said(events) == {"vector_add#2/2/generator/1": ['- a person gives a hint: "Use masks."']}
    assert repeats_its_prompts(events)


async def test_finished_session_takes_a_fork_and_an_edit(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=1), "correct 1.5")
    await table.play()
    mine = candidate("correct 3.0", "mine")
    table.command_at_rest(InstanceForked(base="vector_add#1/1"))
    table.command_at_rest(InstanceForked(base="vector_add#1/1", source=mine))
    events = await table.play()
    state = fold(events)
    assert attempts_of(events) == {"vector_add#1": 1, "vector_add#2": 2, "vector_add#3": 1}
    edit = state.attempt("vector_add#3/1")
    assert (edit.origin, edit.base, edit.source) == (Origin.HUMAN, "vector_add#1/1", mine)
    assert edit.confirmation is Confirmation.CONFIRMED
    assert state.instances["vector_add#3"].finished == "edited"
    assert not edit.calls


async def test_attempt_without_a_kernel_cannot_be_forked(tmp_path: Path) -> None:
    events = await Table(tmp_path, plan(iterations=1), "prose").play()
    refused(events, "has no kernel", InstanceForked(base="vector_add#1/1"))
