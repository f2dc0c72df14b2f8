"""Method `geak`: the prompt that follows each verdict, for any sequence of verdicts."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.corpus.retrieval import build_corpus
from engine.methods.geak import Geak
from engine.methods.progress import TRAP
from engine.prompting.prompting import Setting, knowledge_for
from harness import Verdict
from sessions.events import Origin, Role
from sessions.settings import MethodOptions
from suites import load_suite
from tests.support.engine.scripted_context import VERDICTS, ScriptedAttempt, ScriptedContext


def run(*verdicts: str, why: str = "too clever") -> list[ScriptedAttempt]:
    context = ScriptedContext(*verdicts, why=why)
    asyncio.run(Geak().run(context))
    return context.attempts


def speed(attempt: ScriptedAttempt) -> float:
    return attempt.evaluation.speedup or 0.0 if attempt.evaluation else 0.0


@settings(max_examples=12)
@given(st.lists(VERDICTS, min_size=1, max_size=16))
def test_geak_keeps_its_rules_for_any_verdicts(verdicts: list[str]) -> None:
    attempts = run(*verdicts)
    assert len(attempts) == len(verdicts)
    by_name = {attempt.name: attempt for attempt in attempts}
    failures = 0
    best: ScriptedAttempt | None = None
    for index, (attempt, verdict) in enumerate(zip(attempts, verdicts, strict=True)):
        # An ancestor is always an earlier attempt, so no attempt is its own ancestor.
        assert attempt.base is None or attempts.index(by_name[attempt.base]) < index
        if attempt.origin is Origin.REPAIR:
            assert 0 < failures < TRAP, "a line has at most TRAP failures"
        if attempt.origin is Origin.OPTIMIZE:
            assert attempt.base == best.name, "the base is the best attempt"
        if attempt.origin is Origin.FRESH:
            assert best is None, "no fresh attempt after a correct attempt"
        failures = 0 if failures >= TRAP else failures
        passed = verdict.startswith("correct")
        failures = 0 if passed else failures + 1
        if passed and (best is None or speed(attempt) > speed(best)):
            best = attempt
        reflected = attempt.roles.count(Role.REFLECTOR)
        last = index == len(attempts) - 1
        assert reflected == (0 if passed or verdict == "prose" or last else 1)
        assert len(attempt.calls) - reflected == (2 if verdict == "prose" else 1)


def test_repair_prompt_contains_code_error_and_reflection() -> None:
    first, second = run("wrong", "correct")
    assert first.roles == [Role.GENERATOR, Role.REFLECTOR]
    assert (second.origin, second.base) == (Origin.REPAIR, first.name)
    assert "# judge: wrong" in second.prompt
    assert "scripted verdict: wrong" in second.prompt
    assert "Cause 1.2." in second.prompt


def test_optimizer_starts_from_the_best_attempt() -> None:
    _, _, third = run("correct 2.0", "correct 1.5", "correct 3.0")
    assert third.roles == [Role.OPTIMIZER]
    assert third.base == "vector_add#1/1"
    assert "The best kernel so far: vector_add#1/1" in third.prompt
    assert "# judge: correct 2.0" in third.prompt
    assert "## vector_add#1/2 ranks below vector_add#1/1: 1.50x against 2.00x" in third.prompt


def test_five_failures_in_a_row_start_a_new_approach() -> None:
    attempts = run(*["wrong"] * 7)
    assert [attempt.origin for attempt in attempts] == [
        Origin.FRESH,
        *[Origin.REPAIR] * 4,
        Origin.FRESH,
        Origin.REPAIR,
    ]
    escape = attempts[5]
    assert escape.base is None
    assert "Idea 5.1." in escape.prompt
    assert "Start anew with a different" in escape.prompt


def test_optimizer_continues_from_the_history_after_five_failures() -> None:
    attempts = run("correct 1.2", *["wrong"] * 5, "correct 2.0")
    escape = attempts[6]
    assert (escape.origin, escape.base) == (Origin.OPTIMIZE, "vector_add#1/1")
    assert escape.roles == [Role.OPTIMIZER]
    assert "Ideas that were dropped" in escape.prompt


def test_reply_without_code_is_corrected_once_then_fails() -> None:
    attempts = run(*["prose"] * 6)
    assert [attempt.roles for attempt in attempts] == [[Role.GENERATOR] * 2] * 6
    assert {attempt.evaluation.verdict for attempt in attempts if attempt.evaluation} == {Verdict.NO_CODE}
    corrective = attempts[0].calls[1][1]
    assert [message.role for message in corrective] == ["system", "user", "assistant", "user"]
    assert "python" in corrective[-1].content


def test_reply_without_code_keeps_the_current_line() -> None:
    first, _, third = run("wrong", "prose", "correct")
    assert (third.origin, third.base) == (Origin.REPAIR, first.name)
    assert "Cause 1.2." in third.prompt


def test_rejection_by_a_person_leads_to_a_repair() -> None:
    attempts = run("correct 1.1", "turned_down", "correct 1.3", why="it only works for powers of two")
    assert all(attempt.reviewed for attempt in attempts)
    assert attempts[1].roles == [Role.OPTIMIZER, Role.REFLECTOR]
    assert "it only works for powers of two" in attempts[1].calls[1][1][-1].content
    assert "it only works for powers of two" in attempts[2].prompt
    assert (attempts[2].origin, attempts[2].base) == (Origin.REPAIR, attempts[1].name)


EXAMPLE = "A correct kernel for another task"


@pytest.mark.parametrize(
    "without",
    [
        ("knowledge", "one-shot", "optimizer"),
        (),
        ("knowledge",),
        ("one-shot",),
        ("reflection",),
    ],
)
def test_geak_switches_off_only_the_named_modules(without: tuple[str, ...]) -> None:
    context = ScriptedContext("wrong", "correct", "correct")
    context.options = MethodOptions(without=without)
    context.corpus = build_corpus(load_suite("starter"), [context.task])
    asyncio.run(Geak().run(context))
    calls = [call for attempt in context.attempts for call in attempt.calls]
    roles = {role for role, _ in calls}
    assert (Role.REFLECTOR in roles) == ("reflection" not in without)
    assert (Role.OPTIMIZER in roles) == ("optimizer" not in without)
    assert any(EXAMPLE in messages[-1].content for _, messages in calls) == ("one-shot" not in without)
    heads = [messages[0].content for role, messages in calls if role is not Role.REFLECTOR]
    page = knowledge_for(Setting(context.task, context.targets))[0].splitlines()[0]
    assert all((page in head) == ("knowledge" not in without) for head in heads)
    assert [attempt.evaluation.verdict for attempt in context.attempts if attempt.evaluation][:2] == [
        Verdict.WRONG,
        Verdict.CORRECT,
    ]
    assert len(context.attempts) == (2 if "optimizer" in without else 3)
