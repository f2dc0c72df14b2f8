"""Protects quantization tasks: a kernel that skips the quantization is wrong even if its result is close."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from harness import DevicePool, Verdict
from suites import Task, baseline_source, load_task
from suites.check import check_suite
from suites.folder import read_task
from suites.registry import add_suite
from tests.support.judge.judging import judge_task

pytestmark = pytest.mark.judge
ROUND = "steps = tl.floor(x / divisor + 0.5)"
LOOSE = "[quantization]\ncosine_min = 0.95\nrelative_l1_max = 0.05\nrmse_max = 0.1\n"
"""KernelBench-X's figures for its own task of this name."""


def unquantized(source: str) -> str:
    """The source changed so that it multiplies `x` by the weights in float16, without quantization."""
    for old, new in (
        ("clamped.to(tl.int8)", "x.to(tl.float16)"),
        ("dtype=torch.int8", "dtype=torch.float16"),
        ("tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)", "tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)"),
        (
            "tl.dot(q, weight, accumulator, out_dtype=tl.int32)",
            "tl.dot(q, weight.to(tl.float16), accumulator)",
        ),
        ("accumulator.to(tl.float32) * q_scale[:, None]", "accumulator"),
    ):
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def loosened(folder: Path, *, probe: bool) -> Task:
    """matmul_w8a8 with metrics that an unquantized product meets, with or without the probe.

    The task has one case and no outliers, because an outlier in a row would also find the missing quantization.
    """
    copy = folder / "matmul_w8a8"
    shutil.copytree(load_task("matmul_w8a8").folder, copy)
    text = (copy / "task.toml").read_text().replace(', "degenerate-rows"]', "]")
    text = text.replace('distribution = "outlier"', "")
    start, end = text.index("[quantization]"), text.index("[[cases]]")
    probe_line = "probe = { ulps = 0.6 }\n" if probe else ""
    (copy / "task.toml").write_text(text[:start] + LOOSE + probe_line + "\n" + text[end:])
    task = read_task(copy, suite="mine")
    return msgspec.structs.replace(task, cases=task.cases[:1])


@pytest.mark.asyncio(loop_scope="session")
async def test_unquantized_product_is_wrong_by_metrics(pool: DevicePool) -> None:
    task = load_task("matmul_w8a8")
    task = msgspec.structs.replace(task, cases=task.cases[:1])
    evaluation = await judge_task(pool, unquantized(baseline_source(task)), task)
    assert evaluation.verdict is Verdict.WRONG
    assert evaluation.error.mismatch.metrics["rmse"] > 3e-3


@pytest.mark.soak
@pytest.mark.asyncio(loop_scope="session")
async def test_probe_finds_unquantized_product_that_metrics_accept(pool: DevicePool, tmp_path: Path) -> None:
    source = baseline_source(load_task("matmul_w8a8"))
    without_probe = loosened(tmp_path / "without", probe=False)
    accepted = await judge_task(pool, unquantized(source), without_probe)
    assert (accepted.verdict, accepted.error) == (Verdict.CORRECT, None)
    with_probe = loosened(tmp_path / "with", probe=True)
    refused = await judge_task(pool, unquantized(source), with_probe)
    assert (refused.verdict, refused.error and refused.error.mismatch is not None) == (Verdict.WRONG, True)
    assert "quantization probe" in refused.error.message
    truncated = await judge_task(pool, source.replace(ROUND, "steps = x / divisor"), with_probe)
    assert truncated.verdict is Verdict.WRONG
    correct = await judge_task(pool, source, with_probe)
    assert correct.verdict is Verdict.CORRECT
    assert max(margin.used for margin in correct.margins if "probe" in margin.case) < 0.9


def test_task_with_probe_needs_probe_inputs(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    task = loosened(suite, probe=True)
    problem = task.folder / "problem.py"
    problem.write_text(problem.read_text().replace("def probe_inputs", "def other_inputs"))
    registry = tmp_path / "suites.toml"
    add_suite("mine", suite, registry)
    (problem_report,) = check_suite("mine", registry=registry)
    assert "probe_inputs" in str(problem_report)
