"""The other loops: which prompt follows which verdict, for any sequence of verdicts, and how their attempts run at once."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageProblem
from engine.methods import METHODS, open_method
from engine.methods.progress import TRAP
from harness import Verdict
from sessions.events import EndReason, MethodOptions, Origin, Role
from tests.support.scripted_context import ScriptedContext, Told

FAILING = ("wrong", "call_error", "compile_error", "rejected", "timeout", "crash", "unsupported", "prose")
VERDICTS = st.one_of(
    st.sampled_from((*FAILING, "turned_down", "correct")),
    st.floats(min_value=0.1, max_value=9, allow_nan=False).map(lambda speedup: f"correct {speedup:.2f}"),
)
LOOPS = ("reflexion", "kernelagent", "geak-evolve", "geak")
NAMED = re.compile(r"vector_add#1/\d+")
SPEEDUP = re.compile(r"(\d+\.\d+)x the timing baseline")


def run(method: str, *verdicts: str, **options: object) -> ScriptedContext:
    context = ScriptedContext(*verdicts, options=MethodOptions(**options))  # type: ignore[arg-type]
    asyncio.run(open_method(method).run(context))
    return context


@pytest.mark.parametrize(
    ("method", "verdicts", "without", "reason"),
    [
        ("direct", ("correct",), (), EndReason.ANSWERED),
        ("direct", ("prose",), (), EndReason.ANSWERED),
        ("reflexion", ("wrong", "correct", "wrong"), (), EndReason.SOLVED),
        ("reflexion", ("wrong", "correct"), (), EndReason.SOLVED),
        ("reflexion", ("wrong", "turned_down"), (), EndReason.ITERATIONS),
        ("kernelagent", ("wrong", "wrong", "correct"), (), EndReason.SOLVED),
        ("kernelagent", ("wrong", "wrong", "wrong"), (), EndReason.ITERATIONS),
        ("geak", ("correct", "correct"), (), EndReason.ITERATIONS),
        ("geak", ("correct", "correct"), ("optimizer",), EndReason.SOLVED),
        ("geak-evolve", ("correct", "correct"), (), EndReason.ITERATIONS),
    ],
)
def test_why_a_method_makes_no_more_attempts(
    method: str, verdicts: tuple[str, ...], without: tuple[str, ...], reason: EndReason
) -> None:
    context = ScriptedContext(*verdicts, options=MethodOptions(without=without))
    assert asyncio.run(open_method(method).run(context)) is reason


def roles(attempt: Told) -> list[Role]:
    return [role for role, _ in attempt.calls]


def passed(verdict: str) -> bool:
    return verdict.startswith("correct")


@given(
    method=st.sampled_from(LOOPS),
    verdicts=st.lists(VERDICTS, min_size=1, max_size=14),
    many=st.integers(min_value=1, max_value=4),
)
def test_the_rules_of_every_loop_hold_for_any_verdicts(method: str, verdicts: list[str], many: int) -> None:
    context = run(method, *verdicts, workers=many, descendants=many)
    attempts = context.attempts
    by_name = {attempt.name: attempt for attempt in attempts}
    assert len(attempts) <= len(verdicts)
    assert [attempt.name for attempt in attempts if attempt.name in context.world.abandoned] == sorted(
        context.world.abandoned
    )
    for attempt in attempts:
        seen, base = {attempt.name}, attempt.base
        while base is not None:
            assert base not in seen, "no attempt is its own ancestor"
            seen.add(base)
            base = by_name[base].base
        for (_, messages), known in zip(attempt.calls, attempt.known, strict=True):
            asked = "".join(message.content for message in messages)
            named = {int(name.rpartition("/")[2]) for name in NAMED.findall(asked)}
            assert named <= known, "a prompt names only what was judged before it"
            judged = [by_name[f"vector_add#1/{number}"].evaluation for number in known]
            figures = {f"{one.speedup:.3f}" for one in judged if one and one.speedup is not None}
            assert set(SPEEDUP.findall(asked)) <= figures, "and no speedup that no judge said"
    lines: dict[str, int] = {}
    for attempt in attempts:
        if attempt.origin is Origin.REPAIR:
            assert attempt.base is not None
            lines[attempt.name] = lines.get(attempt.base, 1) + 1
            if method in ("geak", "geak-evolve"):
                assert lines[attempt.name] <= TRAP, "a line is repaired at most until the trap"


@given(st.lists(VERDICTS, min_size=1, max_size=24), st.integers(min_value=1, max_value=5))
def test_evolving_never_loses_the_best_and_ranks_it_last(verdicts: list[str], many: int) -> None:
    context = run("geak-evolve", *verdicts, descendants=many)
    attempts, best = context.attempts, 0.0
    for start in range(0, len(attempts), many):
        for attempt in attempts[start : start + many]:
            if attempt.origin is not Origin.OPTIMIZE:
                continue
            history = attempt.prompt.split("# Correct kernels so far", 1)[1]
            speeds = [float(found) for found in re.findall(r"# judge: correct (\d+\.\d+)", history)]
            assert speeds == sorted(speeds), "ascending, best last"
            assert max(speeds, default=best) == best, "the best is never lost"
        for place, attempt in enumerate(attempts[start : start + many], start):
            if passed(verdicts[place]) and attempt.evaluation is not None:
                best = max(best, attempt.evaluation.speedup or 0.0)


def test_direct_makes_one_attempt_and_reflects_on_nothing() -> None:
    [only] = run("direct", "wrong").attempts
    assert roles(only) == [Role.GENERATOR]
    [corrected] = run("direct", "prose").attempts
    assert roles(corrected) == [Role.GENERATOR] * 2


def test_reflexion_ends_with_the_first_correct_candidate() -> None:
    first, second = run("reflexion", "wrong", "correct", "correct").attempts
    assert roles(first) == [Role.GENERATOR, Role.REFLECTOR]
    assert "Cause 1.2." in second.prompt
    assert (second.origin, second.base) == (Origin.REPAIR, first.name)


def test_reflexion_never_drops_its_line() -> None:
    attempts = run("reflexion", *["wrong"] * (TRAP + 3)).attempts
    assert [attempt.origin for attempt in attempts[1:]] == [Origin.REPAIR] * (TRAP + 2)


@pytest.mark.parametrize("method", ["geak", "reflexion", "geak-evolve"])
def test_without_reflection_nobody_reflects(method: str) -> None:
    attempts = run(method, "wrong", "wrong", "correct", without=("reflection",), descendants=1).attempts
    assert {role for attempt in attempts for role in roles(attempt)} == {Role.GENERATOR}


def test_without_the_optimizer_the_first_correct_candidate_is_the_last() -> None:
    assert len(run("geak", "wrong", "correct", "correct", without=("optimizer",)).attempts) == 2


@pytest.mark.parametrize("method", [name for name in METHODS if name != "tune"])
def test_without_knowledge_the_system_message_holds_no_page(method: str) -> None:
    with_it = run(method, "wrong").attempts[0].calls[0][1][0].content
    without = run(method, "wrong", without=("knowledge",)).attempts[0].calls[0][1][0].content
    assert "num_warps" in with_it
    assert "num_warps" not in without
    assert "## Strategy" in without


def test_workers_work_at_once_with_their_own_history_and_the_first_success_stops_the_others() -> None:
    context = run("kernelagent", "wrong", "call_error", "wrong", "correct", "wrong", "wrong", workers=2)
    assert context.world.most_at_once == 2
    by_number = context.world.attempts
    assert by_number[3].base == "vector_add#1/1"
    assert by_number[4].base == "vector_add#1/2"
    assert "vector_add#1/2" not in by_number[3].prompt, "a worker knows its own attempts alone"
    assert "told to be call_error" in by_number[4].prompt
    assert not {6} & set(by_number), "nothing is begun after the success"


def test_workers_share_the_iterations() -> None:
    attempts = run("kernelagent", *["wrong"] * 7, workers=3).attempts
    assert len(attempts) == 7
    assert len(run("kernelagent", "wrong", workers=3).attempts) == 1


def test_a_round_is_made_at_once_from_parents_by_rank() -> None:
    verdicts = (
        "correct 1.5",
        "correct 3.0",
        "correct 2.0",
        "correct 1.0",
        "wrong",
        "correct 2.5",
        "correct 1.0",
    )
    context = run("geak-evolve", *verdicts, descendants=3)
    assert context.world.most_at_once == 3
    attempts = context.attempts
    assert [attempt.base for attempt in attempts[:3]] == [None] * 3
    assert [attempt.base for attempt in attempts[3:6]] == [
        "vector_add#1/2",
        "vector_add#1/3",
        "vector_add#1/1",
    ]
    assert len(attempts) == 7, "the last round is smaller"
    assert attempts[3].rival is not None
    assert "# 2.1" in attempts[3].rival, "raced against the best of all"


def test_a_failed_descendant_is_repaired_in_its_own_lineage() -> None:
    context = run("geak-evolve", "correct 2.0", "wrong", "correct 1.0", "correct 1.0", descendants=2)
    fourth = context.attempts[3]
    assert (fourth.origin, fourth.base) == (Origin.REPAIR, "vector_add#1/2")
    assert "Cause 2.2." in fourth.prompt


def test_a_person_who_turns_a_workers_candidate_down_lets_the_others_go_on() -> None:
    attempts = run("kernelagent", "turned_down", "wrong", "correct", "wrong", workers=2).attempts
    assert attempts[0].evaluation is not None
    assert attempts[0].evaluation.verdict is Verdict.CORRECT
    assert "too clever" in attempts[2].prompt


def test_every_method_opens_by_its_name_and_an_unknown_one_lists_them() -> None:
    for name in METHODS:
        assert open_method(name).name == name
    with pytest.raises(UsageProblem, match="there are: geak, geak-evolve"):
        open_method("geek")
