"""Protects the check of oracle strength: a weak task is reported with the wrong answer that passes; starter tasks are strong."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import DevicePool, target, weigh_oracle
from harness.wire.results.evaluation import Weakness
from harness.worker.judge.wrong_answers import Strength
from harness.worker.oracle.problem import BadProblem, Problem
from suites import Task, load_suite
from suites.folder import read_task
from tests.suites.folders import PROBLEM, TASK, write_documented_task, write_folder

pytestmark = pytest.mark.judge
BASELINE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * 2, mask=offsets < n)


def double(x):
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""


def write_task(folder: Path, *, task: str = TASK, problem: str = PROBLEM, baseline: str = BASELINE) -> Task:
    return read_task(write_folder(folder, task=task, problem=problem, baseline=baseline), suite="mine")


def weaknesses(task: Task) -> tuple[Weakness, ...]:
    return Strength(Problem(task), task, seed=1).weaknesses(task.cases)


def accepted(task: Task) -> set[str]:
    return {weakness.control for weakness in weaknesses(task)}


@pytest.mark.parametrize("task", load_suite("starter"), ids=lambda task: task.name)
def test_starter_oracle_refuses_every_wrong_answer(task: Task) -> None:
    strength = Strength(Problem(task), task, seed=3)
    assert strength.weaknesses(task.cases) == ()
    assert strength.tried >= 30


def test_documented_example_refuses_every_wrong_answer(tmp_path: Path) -> None:
    assert weaknesses(write_documented_task(tmp_path)) == ()


def test_loose_tolerance_accepts_zeros(tmp_path: Path) -> None:
    """robust-kbench's range filter: the task accepts zeros and every other small answer."""
    task = write_task(
        tmp_path,
        task=TASK.replace("atol = 0.0", "atol = 0.5"),
        problem=PROBLEM.replace("2 * x.double()", "x.double() / 1e3"),
    )
    assert {"zeros", "the mean of the answer", "the answer to other inputs", "input x"} <= accepted(task)


def test_oracle_with_constant_mean_accepts_wrong_answers(tmp_path: Path) -> None:
    """The mean of a softmax is one over its length for every input."""
    problem = PROBLEM.replace("2 * x.double()", "torch.softmax(x.double(), 0).mean().expand(x.shape).clone()")
    controls = accepted(write_task(tmp_path, problem=problem))
    assert {
        "the mean of the answer",
        "the answer shifted by one along axis 0",
        "the answer to other inputs",
        "input x",
    } <= controls
    assert "zeros" not in controls


def test_identity_task_accepts_copy_of_input(tmp_path: Path) -> None:
    weak = weaknesses(write_task(tmp_path, problem=PROBLEM.replace("2 * x.double()", "x.double()")))
    assert {(weakness.case, weakness.control) for weakness in weak} == {
        ("plain", "a copy of x"),
        ("outlier", "a copy of x"),
    }
    assert weak[0].problem == "accepted as `out`: a copy of x"


def test_unused_input_is_named(tmp_path: Path) -> None:
    task = TASK.replace("double(x)", "double(x, bias)")
    problem = PROBLEM.replace("def oracle(x)", "def oracle(x, bias)").replace(
        ".to(dtype)}", '.to(dtype), "bias": torch.randn(7, generator=generator)}'
    )
    assert accepted(write_task(tmp_path, task=task, problem=problem)) == {"input bias"}


def test_memory_for_an_output_is_no_unused_input(tmp_path: Path) -> None:
    task = TASK.replace("double(x)", "double(x, out)").replace(
        'outlier_inputs = ["x"]\n', 'outlier_inputs = ["x"]\nin_place = ["out"]\n'
    )
    problem = PROBLEM.replace("def oracle(x)", "def oracle(x, out)").replace(
        ".to(dtype)}", '.to(dtype), "out": torch.randn(sizes["n"], generator=generator).to(dtype)}'
    )
    assert accepted(write_task(tmp_path, task=task, problem=problem)) == set()


def test_tolerance_below_one_rounding_refuses_the_oracle(tmp_path: Path) -> None:
    problem = PROBLEM.replace("2 * x.double()", "x.double() / 3")
    tight = weaknesses(write_task(tmp_path, task=TASK.replace("1e-6", "1e-8"), problem=problem))
    assert {weakness.control for weakness in tight} == {"truth"}
    assert "below one rounding" in tight[0].problem
    narrow = weaknesses(write_task(tmp_path / "b", problem=problem.replace("x.double() / 3", "x / 3")))
    assert narrow[0].problem == "the oracle answers in float32, not in float64"


def test_task_without_output_elements_is_bad(tmp_path: Path) -> None:
    problem = PROBLEM.replace("2 * x.double()", "x.double()[:0]")
    with pytest.raises(BadProblem, match="no case of mine/double has an output with an element"):
        weaknesses(write_task(tmp_path, problem=problem))


@pytest.mark.asyncio(loop_scope="session")
async def test_broken_oracle_is_not_sound(pool: DevicePool, tmp_path: Path) -> None:
    task = write_task(tmp_path, problem=PROBLEM.replace("2 * x", "2 * y"))
    report = await weigh_oracle(task, pool=pool, targets=[target("gfx942")])
    assert "name 'y' is not defined" in report.problem
    assert not report.sound
