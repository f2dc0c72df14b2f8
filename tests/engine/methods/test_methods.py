"""All methods: the prompt that follows each verdict, the reason of the end, and parallel attempts."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.methods import METHODS, Start, open_method
from engine.methods.progress import TRAP
from engine.methods.proposing import setting_of
from harness import Verdict
from harness.wire.results.ratios import TIE
from sessions.events import EndReason, Origin, Role
from sessions.settings import MethodOptions
from tests.conftest import SOAK
from tests.support.engine.engines import candidate
from tests.support.engine.scripted_context import VERDICTS, ScriptedContext

LOOPS = ("reflexion", "kernelagent", "geak-evolve", "geak")
NAMED = re.compile(r"vector_add#1/\d+")
SPEEDUP = re.compile(r"(\d+\.\d+)x the baseline")


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
def test_method_ends_with_its_reason(
    method: str, verdicts: tuple[str, ...], without: tuple[str, ...], reason: EndReason
) -> None:
    context = ScriptedContext(*verdicts, options=MethodOptions(without=without))
    assert asyncio.run(open_method(method).run(context)) is reason


@settings(max_examples=300 if SOAK else 15)
@given(
    method=st.sampled_from(LOOPS),
    verdicts=st.lists(VERDICTS, min_size=1, max_size=14),
    parallel=st.integers(min_value=1, max_value=4),
)
def test_every_method_keeps_its_rules_for_any_verdicts(
    method: str, verdicts: list[str], parallel: int
) -> None:
    context = run(method, *verdicts, workers=parallel, descendants=parallel)
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
        for (_, messages), judged_before in zip(attempt.calls, attempt.judged_before, strict=True):
            prompt = "".join(message.content for message in messages)
            named = {int(name.rpartition("/")[2]) for name in NAMED.findall(prompt)}
            assert named <= judged_before, "a prompt names only attempts that were judged before it"
            evaluations = [by_name[f"vector_add#1/{number}"].evaluation for number in judged_before]
            speedups = [evaluation.speedup for evaluation in evaluations if evaluation]
            figures = {f"{speedup:.2f}" for speedup in speedups if speedup is not None}
            assert set(SPEEDUP.findall(prompt)) <= figures, (
                "a prompt contains only speedups that the judge gave"
            )
    lines: dict[str, int] = {}
    for attempt in attempts:
        if attempt.origin is Origin.REPAIR:
            assert attempt.base is not None
            lines[attempt.name] = lines.get(attempt.base, 1) + 1
            if method in ("geak", "geak-evolve"):
                assert lines[attempt.name] <= TRAP, "a line has at most TRAP attempts"


@settings(max_examples=300 if SOAK else 12)
@given(st.lists(VERDICTS, min_size=1, max_size=24), st.integers(min_value=1, max_value=5))
def test_geak_evolve_keeps_the_best_attempt_and_ranks_it_last(verdicts: list[str], parallel: int) -> None:
    context = run("geak-evolve", *verdicts, descendants=parallel)
    attempts, best = context.attempts, 0.0
    for start in range(0, len(attempts), parallel):
        for attempt in attempts[start : start + parallel]:
            if attempt.origin is not Origin.OPTIMIZE:
                continue
            history = attempt.prompt.split("# The best kernel so far", 1)[1]
            speeds = [
                float(x) for x in re.findall(r"^(?:## \S+: )?(\d\.\d+)x the baseline", history, re.MULTILINE)
            ]
            assert speeds[1:] == sorted(speeds[1:]), "ascending, best last"
            assert max(speeds, default=best) == pytest.approx(best, abs=0.005), "the best is in the prompt"
            assert all(speed * (1 + 2 * TIE) >= best for speed in speeds[:1]), "within a tie the older stays"
        for index, attempt in enumerate(attempts[start : start + parallel], start):
            if verdicts[index].startswith("correct") and attempt.evaluation is not None:
                best = max(best, attempt.evaluation.speedup or 0.0)


def test_direct_makes_one_attempt_without_reflection() -> None:
    [attempt] = run("direct", "wrong").attempts
    assert attempt.roles == [Role.GENERATOR]
    [corrected] = run("direct", "prose").attempts
    assert corrected.roles == [Role.GENERATOR] * 2


def test_reply_that_the_client_cut_is_not_asked_for_again() -> None:
    [attempt] = run("direct", "endless").attempts
    assert (attempt.roles, attempt.unusable) == ([Role.GENERATOR], "cut at 9 bytes")


def test_reflexion_never_drops_its_line() -> None:
    attempts = run("reflexion", *["wrong"] * (TRAP + 3)).attempts
    assert [attempt.origin for attempt in attempts[1:]] == [Origin.REPAIR] * (TRAP + 2)


@pytest.mark.parametrize("method", ["geak", "reflexion", "geak-evolve"])
def test_without_reflection_no_reflector_is_called(method: str) -> None:
    attempts = run(method, "wrong", "wrong", "correct", without=("reflection",), descendants=1).attempts
    assert {role for attempt in attempts for role in attempt.roles} == {Role.GENERATOR}


@pytest.mark.parametrize("method", [name for name in METHODS if name != "tune"])
def test_without_knowledge_the_system_message_contains_no_page(method: str) -> None:
    with_knowledge = run(method, "wrong").attempts[0].calls[0][1][0].content
    without_knowledge = run(method, "wrong", without=("knowledge",)).attempts[0].calls[0][1][0].content
    assert "num_warps" in with_knowledge
    assert "num_warps" not in without_knowledge
    assert "How a candidate is judged" in without_knowledge


@pytest.mark.parametrize("without", [(), ("examples",)])
async def test_without_examples_prompts_show_no_values_of_a_call(without: tuple[str, ...]) -> None:
    context = ScriptedContext("wrong", options=MethodOptions(without=without))
    setting = await setting_of(context)
    assert setting.examples is not bool(without)


def test_workers_run_in_parallel_with_their_own_history_until_the_first_success() -> None:
    context = run("kernelagent", "wrong", "call_error", "wrong", "correct", "wrong", "wrong", workers=2)
    assert context.world.most_at_once == 2
    by_number = context.world.attempts
    assert by_number[3].base == "vector_add#1/1"
    assert by_number[4].base == "vector_add#1/2"
    assert "vector_add#1/2" not in by_number[3].prompt, "a worker sees only its own attempts"
    assert "scripted verdict: call_error" in by_number[4].prompt
    assert not {6} & set(by_number), "no attempt starts after the success"


def test_workers_share_the_iterations() -> None:
    attempts = run("kernelagent", *["wrong"] * 7, workers=3).attempts
    assert len(attempts) == 7
    assert len(run("kernelagent", "wrong", workers=3).attempts) == 1


def test_round_of_geak_evolve_runs_in_parallel_from_parents_by_rank() -> None:
    verdicts = (
        "correct 1.5", "correct 3.0", "correct 2.0", "correct 1.0", "wrong", "correct 2.5", "correct 1.0",
    )  # fmt: skip
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


def test_failed_descendant_is_repaired_in_its_own_lineage() -> None:
    context = run("geak-evolve", "correct 2.0", "wrong", "correct 1.0", "correct 1.0", descendants=2)
    fourth = context.attempts[3]
    assert (fourth.origin, fourth.base) == (Origin.REPAIR, "vector_add#1/2")
    assert "Cause 2.2." in fourth.prompt


def test_rejected_candidate_does_not_stop_the_other_workers() -> None:
    attempts = run("kernelagent", "turned_down", "wrong", "correct", "wrong", workers=2).attempts
    assert attempts[0].evaluation.verdict is Verdict.CORRECT
    assert "too clever" in attempts[2].prompt


class StartedContext(ScriptedContext):
    """`ScriptedContext` of an instance that starts from a person's kernel; the first verdict is the kernel's."""

    def start(self) -> Start:
        return Start(candidate(self._start, "mine"), Origin.HUMAN, "A person's kernel.")

    def __init__(self, start: str, *verdicts: str) -> None:
        super().__init__(start, *verdicts)
        self._start = start
        self.iterations = len(verdicts)
        self.phases = (len(verdicts),)


@pytest.mark.parametrize("method", ["direct", *LOOPS])
def test_wrong_start_is_repaired(method: str) -> None:
    context = StartedContext("wrong", "correct 1.5")
    asyncio.run(open_method(method).run(context))
    mine, repair = context.attempts
    assert (mine.origin, mine.base) == (Origin.HUMAN, None)
    assert (repair.origin, repair.base) == (Origin.REPAIR, mine.name)
    assert "# mine" in repair.prompt


@pytest.mark.parametrize("method", ["direct", "geak", "geak-evolve"])
def test_correct_start_is_optimized(method: str) -> None:
    context = StartedContext("correct 1.5", "correct 2.0")
    asyncio.run(open_method(method).run(context))
    mine, faster = context.attempts
    assert not mine.calls
    assert not mine.reviewed, "a person gave it"
    assert (faster.origin, faster.base) == (Origin.OPTIMIZE, mine.name)
    assert "# mine" in faster.prompt


@pytest.mark.parametrize("method", ["reflexion", "kernelagent"])
def test_method_that_seeks_a_correct_kernel_ends_with_a_correct_start(method: str) -> None:
    context = StartedContext("correct", "wrong")
    assert asyncio.run(open_method(method).run(context)) is EndReason.SOLVED
    assert len(context.attempts) == 1
