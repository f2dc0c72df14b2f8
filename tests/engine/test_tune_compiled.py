"""Sweeps of kernels that ship, compiled for real: options of the installed Triton, what is dropped, a whole session."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from triton.backends.amd.compiler import HIPOptions
from triton.backends.nvidia.compiler import CUDAOptions

from engine.judging import PoolJudge
from engine.models import NoModel
from engine.tuning.edits import apply_edits
from engine.tuning.knobs import knobs_of
from engine.tuning.legal import launch_options
from engine.tuning.prospect import SPILLS, TOO_LARGE, code, fault
from harness import DevicePool, Target, Verdict, target, targets
from harness.stages.survey import Survey
from sessions import Home, fold
from sessions.metrics import rank
from suites import baseline_source, load_task
from tests.support.engines import plan, play
from tests.support.judging import pool

__all__ = ["pool"]
pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
GFX942 = target("gfx942")


@pytest.mark.parametrize("of", targets(), ids=lambda of: of.name)
async def test_options_and_defaults_are_those_of_the_installed_triton(of: Target) -> None:
    known = HIPOptions if of.backend == "hip" else CUDAOptions
    defaults = {field.name: field.default for field in dataclasses.fields(known)}
    for option in launch_options(of):
        assert defaults[option.name] == option.default, option.name


async def test_what_spills_or_does_not_fit_is_known_before_anything_runs(pool: DevicePool) -> None:
    task = load_task("matmul")
    source = baseline_source(task)
    knobs = {knob.name: knob for knob in knobs_of(source, GFX942)}

    def changed(name: str, value: str) -> str:
        return apply_edits(source, next(one for one in knobs[name].choices if one.shown == value).edits)

    start, again, deep, large, packed = await Survey(pool, task, GFX942).compile(
        [
            source,
            source + "\n# the same code\n",
            changed("num_stages", "4"),
            changed("BLOCK_M, BLOCK_N", "256"),
            changed("kpack", "2"),
        ]
    )
    assert code(start) == code(again), "wherever it was compiled"
    assert code(packed) != code(start)
    assert [fault(one, start) for one in (again, deep, large, packed)] == ["", TOO_LARGE, SPILLS, ""]


async def test_a_source_of_the_task_that_fails_is_one_error(pool: DevicePool) -> None:
    task = load_task("softmax")
    broken, start = await Survey(pool, task, GFX942).compile(
        ["import nothing_that_exists\n", baseline_source(task)]
    )
    assert "nothing_that_exists" in broken.error
    assert not start.error


async def test_the_baseline_of_softmax_is_tuned_without_a_model(pool: DevicePool, tmp_path: Path) -> None:
    of = plan(
        "20260101-000000-tune-0000", method="tune", model="none", tasks=("starter/softmax",), iterations=2
    )
    judge = PoolJudge(pool, targets=[GFX942], seed=1)
    state = fold(await play(Home(tmp_path), NoModel(), of=of, judge=judge))  # type: ignore[arg-type]
    start, variant = state.instances["softmax#1"].attempts
    assert start.source == baseline_source(load_task("softmax"))
    assert start.sweep is not None
    assert start.sweep.tried > 5
    assert (start.verdict, variant.verdict) == (Verdict.CORRECT, Verdict.CORRECT)
    assert start.evaluation is not None
    assert variant.evaluation is not None
    assert rank(variant.evaluation) >= rank(start.evaluation), "as it looked before it was judged"
    assert state.instances["softmax#1"].best == variant.attempt
