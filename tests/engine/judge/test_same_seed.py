"""The real judge gives the same verdicts for the same seed, replies and device."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engine.judge.judging import Judge
from engine.models import Reply, Request, ScriptedClient
from harness import DevicePool, Evaluation, target
from harness.stages.evaluator import LocalEvaluator
from sessions import Home
from sessions.events import AttemptJudged, Role
from tests.support.engine.engines import plan, play
from tests.support.engine.live_engines import right, wrong

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]


def answer(request: Request) -> Reply:
    if request.key.role is Role.REFLECTOR:
        return Reply(text="It subtracts.")
    return Reply(text=wrong() if request.key.attempt == 1 else right())


async def verdicts(home: Home, judge: Judge) -> list[Evaluation]:
    events = await play(
        home, ScriptedClient(answer=answer), judge=judge, session_plan=plan(iterations=2, instances=2)
    )
    judged = {event.attempt: event.evaluation for event in events if isinstance(event, AttemptJudged)}
    return [judged[attempt] for attempt in sorted(judged)]


def decided(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation without durations and without user and folder of the sandbox."""
    stages = tuple(msgspec.structs.replace(stage, seconds=0.0) for stage in evaluation.stages)
    layers = tuple(msgspec.structs.replace(layer, why="") for layer in evaluation.sandbox)
    return msgspec.structs.replace(evaluation, stages=stages, sandbox=layers, resources={}, facts=())


@pytest.mark.soak
async def test_two_runs_with_one_seed_give_the_same_verdicts(pool: DevicePool, tmp_path: Path) -> None:
    judge = Judge(LocalEvaluator(pool), targets=[target("gfx942")], seed=5)
    first = await verdicts(Home(tmp_path / "first"), judge)
    second = await verdicts(Home(tmp_path / "second"), judge)
    assert [evaluation.verdict for evaluation in first] == ["wrong", "correct", "wrong", "correct"]
    assert [decided(evaluation) for evaluation in first] == [decided(evaluation) for evaluation in second]
    other_seed = await verdicts(
        Home(tmp_path / "other"), Judge(LocalEvaluator(pool), targets=[target("gfx942")], seed=6)
    )
    assert other_seed[0].error.mismatch != first[0].error.mismatch, "a different seed draws different inputs"
