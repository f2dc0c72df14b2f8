"""A person pins and bans the bases of later attempts; a session that was cut anywhere repeats its prompts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine.methods.geak_evolve import Lineage
from engine.methods.progress import Progress
from sessions import fold
from sessions.events import AttemptBanned, AttemptPinned, HintGiven, Orders
from sessions.settings import MethodOptions
from tests.conftest import SOAK
from tests.support.engine.engines import cut, plan
from tests.support.engine.steering import Table, prompts, refused, repeats_its_prompts
from tests.support.judge.judged_candidates import passing

STRIDE = 1 if SOAK else 29
"""Distance of the tested cuts in lines; each cut runs a session."""


@pytest.mark.parametrize("method", ["geak", "geak-evolve"])
async def test_pinned_attempt_is_the_base_again_after_a_crash(tmp_path: Path, method: str) -> None:
    session_plan = plan(method=method, iterations=5, options=MethodOptions(descendants=1))
    verdicts = ("correct 2.0", "correct 3.0", "correct 1.5", "correct 1.6", "correct 1.7")
    table = Table(tmp_path, session_plan, *verdicts)
    table.acts["1/3/optimizer"] = lambda: table.command(AttemptPinned(attempt="vector_add#1/1"))
    before = await table.play(kill_at="1/4/optimizer")
    events = await table.play()
    bases = [attempt.base and attempt.base.partition("/")[2] for attempt in fold(events).attempts()]
    assert bases == [None, "1", "2", "1", "1"]
    prompt = prompts(events)["vector_add#1/4/optimizer/1"]
    assert prompt == prompts(before)["vector_add#1/4/optimizer/1"]
    assert "faster** than vector_add#1/1" in prompt
    assert "# 1.1.1" in prompt
    assert "# 1.2.1" not in prompt, "the code of a better kernel"
    assert "a person chose vector_add#1/1" in prompt


def test_pin_holds_for_an_attempt_that_was_rejected_before() -> None:
    rejected = dataclasses.replace(passing("vector_add#1/1"), rejection="unreadable")
    progress, lineage = Progress(), Lineage()
    progress.failed(rejected)
    lineage.remember(rejected)
    progress.passed(passing("vector_add#1/2", source="b = 1\n"))
    progress.obey(Orders(pinned="vector_add#1/1"))
    base = progress.next_step().base
    assert base is not None
    assert (base.attempt, base.rejection) == ("vector_add#1/1", None)
    assert lineage.correct["vector_add#1/1"].passed


@pytest.mark.parametrize("method", ["geak", "geak-evolve"])
async def test_banned_attempt_is_no_base_and_in_no_later_prompt(tmp_path: Path, method: str) -> None:
    session_plan = plan(method=method, iterations=4, options=MethodOptions(descendants=1))
    table = Table(tmp_path, session_plan, "correct 1.5", "correct 3.0", "correct 1.2")
    table.acts["1/3/optimizer"] = lambda: table.command(AttemptBanned(attempt="vector_add#1/2"))
    events = await table.play()
    assert fold(events).attempt("vector_add#1/4").base == "vector_add#1/1"
    assert "vector_add#1/2" not in prompts(events)["vector_add#1/4/optimizer/1"]
    assert fold(events).instances["vector_add#1"].best == "vector_add#1/2", "a ban is no rejection"


async def test_banned_candidate_is_not_repaired(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=2), "wrong")
    table.acts["1/1/reflector"] = lambda: table.command(AttemptBanned(attempt="vector_add#1/1"))
    events = await table.play()
    assert [attempt.base for attempt in fold(events).attempts()] == [None, None]


@pytest.mark.parametrize(
    ("method", "verdict", "words"),
    [("geak", "wrong", "is not correct"), ("reflexion", "wrong", "no base to choose")],
)
async def test_impossible_pin_is_refused(tmp_path: Path, method: str, verdict: str, words: str) -> None:
    events = await Table(tmp_path, plan(method=method, iterations=2), verdict).play(kill_at="1/2/generator")
    refused(events, words, AttemptPinned(attempt="vector_add#1/1"))


@pytest.mark.parametrize("method", ["geak", "geak-evolve"])
async def test_session_cut_after_any_line_repeats_its_prompts(tmp_path: Path, method: str) -> None:
    session_plan = plan(method=method, iterations=7, options=MethodOptions(descendants=2))
    whole = Table(tmp_path / "whole", session_plan, "correct 1.0", "wrong", "correct 2.0", "correct 3.0")
    whole.acts = {
        "1/1/generator": lambda: whole.command(HintGiven(instance="vector_add#1", text="Use masks.")),
        "1/3": lambda: whole.decide("vector_add#1/1", accepted=False, why="unreadable"),
        "1/5": lambda: whole.command(AttemptBanned(attempt="vector_add#1/1")),
        "1/6": lambda: whole.command(AttemptPinned(attempt="vector_add#1/3")),
    }
    events = await whole.play()
    assert not whole.acts, "every command was given"
    for count in range(2, len(events) - 1, STRIDE):
        again = Table(tmp_path / f"cut-{count}", session_plan, *whole.verdicts)
        cut(whole.home, again.home, session_plan.session, count)
        assert repeats_its_prompts(await again.play()), f"after {count} of {len(events)} lines"
