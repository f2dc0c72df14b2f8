"""Sweeps of the shipped kernels with the real compiler: launch options, dropped variants, a whole session."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from triton.backends.amd.compiler import HIPOptions
from triton.backends.nvidia.compiler import CUDAOptions

from engine.judge.judging import Judge
from engine.models import NoModel
from engine.tuning.edits import apply_edits
from engine.tuning.knobs import knobs_of
from engine.tuning.legal import launch_options
from engine.tuning.sweep import SPILLS, TOO_LARGE, code, fault
from harness import DevicePool, Target, Verdict, target
from harness.hardware.targets import targets
from harness.stages.evaluator import LocalEvaluator
from harness.stages.survey import Survey
from sessions import Home, fold
from sessions.state.ranking import rank
from suites import baseline_source, load_task
from tests.support.engine.engines import plan, play
from tests.support.judge.judging import pool

__all__ = ["pool"]
pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
GFX942 = target("gfx942")


@pytest.mark.parametrize("gpu", targets(), ids=lambda gpu: gpu.name)
async def test_launch_options_and_defaults_match_the_installed_triton(gpu: Target) -> None:
    options = HIPOptions if gpu.backend == "hip" else CUDAOptions
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    for option in launch_options(gpu):
        assert defaults[option.name] == option.default, option.name


@pytest.mark.soak
async def test_survey_finds_spills_and_oversize_before_any_run(pool: DevicePool) -> None:
    task = load_task("matmul")
    source = baseline_source(task)
    knobs = {knob.name: knob for knob in knobs_of(source, GFX942)}

    def changed(name: str, value: str) -> str:
        return apply_edits(
            source, next(choice for choice in knobs[name].choices if choice.shown == value).edits
        )

    start, again, deep, large, packed = await Survey(pool, task, GFX942).compile(
        [
            source,
            source + "\n# the same code\n",
            changed("num_stages", "4"),
            changed("BLOCK_M, BLOCK_N", "256"),
            changed("kpack", "2"),
        ]
    )
    assert code(start) == code(again), "equal code has an equal hash"
    assert code(packed) != code(start)
    assert [fault(variant, start) for variant in (again, deep, large, packed)] == ["", TOO_LARGE, SPILLS, ""]


@pytest.mark.soak
async def test_softmax_baseline_is_tuned_without_a_model(pool: DevicePool, tmp_path: Path) -> None:
    session_plan = plan(
        "20260101-000000-tune-0000", method="tune", model="none", tasks=("starter/softmax",), iterations=2
    )
    judge = Judge(LocalEvaluator(pool), targets=[GFX942], seed=1)
    state = fold(await play(Home(tmp_path), NoModel(), session_plan=session_plan, judge=judge))  # type: ignore[arg-type]
    start, variant = state.instances["softmax#1"].attempts
    assert start.source == baseline_source(load_task("softmax"))
    assert start.sweep.tried > 5
    assert (start.verdict, variant.verdict) == (Verdict.CORRECT, Verdict.CORRECT)
    assert rank(variant.evaluation) >= rank(start.evaluation), "the judged rank agrees with the sweep"
