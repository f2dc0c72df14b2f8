"""Quantization tasks: the work itself is asked for, not a result that is close enough without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness import DevicePool, Evaluation, Verdict, evaluate, target
from suites import Task, baseline_source, load_task
from suites.check import check_suite
from suites.folder import read_task
from suites.registry import add_suite

pytestmark = pytest.mark.judge
ROUND = "steps = tl.floor(x / divisor + 0.5)"
LOOSE = "[quantization]\ncosine_min = 0.95\nrelative_l1_max = 0.05\nrmse_max = 0.1\n"
"""KernelBench-X's figures for its own task of this name."""


def unquantized(source: str) -> str:
    """Multiplies `x` itself by the weights, in float16; keeps the look of a quantizing kernel."""
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
    """matmul_w8a8 with metrics that an unquantized product meets; with the probe, or without. Values are mild: one that outweighs
    its row would tell as well.
    """
    made = folder / "matmul_w8a8"
    shutil.copytree(load_task("matmul_w8a8").folder, made)
    text = (made / "task.toml").read_text().replace(', "degenerate-rows"]', "]")
    text = text.replace('distribution = "outlier"', "")
    start, end = text.index("[quantization]"), text.index("[[cases]]")
    kept = "probe = { ulps = 0.6 }\n" if probe else ""
    (made / "task.toml").write_text(text[:start] + LOOSE + kept + "\n" + text[end:])
    return read_task(made, suite="mine")


async def judged(pool: DevicePool, task: Task, source: str) -> Evaluation:
    return await evaluate(source, task, pool=pool, targets=[target("gfx942")], seed=1)


@pytest.mark.asyncio(loop_scope="session")
async def test_an_unquantized_product_is_wrong_by_the_metrics(pool: DevicePool) -> None:
    task = load_task("matmul_w8a8")
    found = await judged(pool, task, unquantized(baseline_source(task)))
    assert found.verdict is Verdict.WRONG
    assert found.error is not None
    assert found.error.mismatch is not None
    assert found.error.mismatch.metrics["rmse"] > 3e-3


@pytest.mark.asyncio(loop_scope="session")
async def test_where_the_metrics_are_loose_the_probe_tells(pool: DevicePool, tmp_path: Path) -> None:
    source = baseline_source(load_task("matmul_w8a8"))
    blind = loosened(tmp_path / "blind", probe=False)
    passed = await judged(pool, blind, unquantized(source))
    assert (passed.verdict, passed.error) == (Verdict.CORRECT, None)
    seeing = loosened(tmp_path / "seeing", probe=True)
    found = await judged(pool, seeing, unquantized(source))
    assert (found.verdict, found.error and found.error.mismatch is not None) == (Verdict.WRONG, True)
    assert found.error is not None
    assert "quantization probe" in found.error.message
    truncated = await judged(pool, seeing, source.replace(ROUND, "steps = x / divisor"))
    assert truncated.verdict is Verdict.WRONG
    right = await judged(pool, seeing, source)
    assert right.verdict is Verdict.CORRECT
    assert max(one.used for one in right.margins if "probe" in one.case) < 0.9


def test_a_probe_needs_its_inputs(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    task = loosened(suite, probe=True)
    problem = task.folder / "problem.py"
    problem.write_text(problem.read_text().replace("def probe_inputs", "def other_inputs"))
    registry = tmp_path / "suites.toml"
    add_suite("mine", suite, registry)
    (found,) = check_suite("mine", registry=registry)
    assert "probe_inputs" in str(found)
