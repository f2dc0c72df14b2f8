"""Runs starter baselines and variants in Triton's interpreter and prints one JSON report.

A separate program, because the interpreter must be selected before the import of triton.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
from torch._subclasses import FakeTensorMode

from harness import target
from harness.worker.interpreter import interpreter
from harness.worker.oracle.inputs.distributions import inject_outliers
from suites import Case, Distribution, Task, baseline_source, load_suite
from suites.tolerances import tolerance_of
from tests.suites.folders import write_documented_task
from tests.suites.variants import WRONG, Variant

BASELINE_SEEDS = range(2 if os.environ.get("WAVEDECK_SOAK") == "1" else 1)
Outputs = tuple[torch.Tensor, ...]


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_tuple(outputs: torch.Tensor | Outputs) -> Outputs:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def draw_inputs(problem: ModuleType, task: Task, case: Case, seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    inputs: dict[str, Any] = problem.make_inputs(case.cpu, getattr(torch, case.dtype), generator)
    if case.distribution is Distribution.OUTLIER:
        inject_outliers(inputs, task.outlier_inputs, generator)
    return inputs


def excess(task: Task, case: Case, expected: Outputs, got: Outputs) -> float:
    """Return the share of the tolerance that the worst element (or metric) uses; above 1 is wrong."""
    worst = 0.0
    assert len(expected) == len(task.outputs)
    if len(got) != len(expected):
        return float("inf")
    for output, reference, answer in zip(task.outputs, expected, got, strict=True):
        dtype = getattr(torch, case.dtype if output.dtype == "input" else output.dtype)
        if answer.shape != reference.shape or answer.dtype != dtype or not torch.isfinite(answer).all():
            return float("inf")
        truth, value = reference.double(), answer.double()
        error = (value - truth).abs()
        if task.quantization is not None:
            limits = task.quantization
            cosine = float((value * truth).sum() / (value.norm() * truth.norm()))
            if not cosine >= limits.cosine_min:
                return float("inf")
            relative_l1 = float(error.sum() / truth.abs().sum())
            rmse = float(error.norm() / truth.norm())
            worst = max(worst, relative_l1 / limits.relative_l1_max, rmse / limits.rmse_max)
        else:
            tolerance = tolerance_of(task, output, case)
            allowed = tolerance.atol + tolerance.rtol * truth.abs()
            if tolerance.accumulation:
                root = math.sqrt(case.cpu[tolerance.reduction]) * float(truth.square().mean().sqrt())
                allowed += tolerance.accumulation * 2**-24 * root
            used = torch.where(error == 0, 0.0, error / allowed)
            worst = max(worst, float(used.max()))
    return worst


def degenerate(inputs: dict[str, Any], expected: Outputs, got: Outputs) -> Iterator[tuple[str, Outputs]]:
    """Yield answers that need no kernel, in the dtypes of the correct answer."""
    yield "zeros", tuple(torch.zeros_like(output) for output in got)
    yield "ones", tuple(torch.ones_like(output) for output in got)
    means = [output.double().mean() for output in expected]
    yield "mean", tuple(torch.full_like(output, float(mean)) for output, mean in zip(got, means, strict=True))
    if all(output.dim() > 1 for output in got):
        rows = [output.double().mean(dim=-1, keepdim=True) for output in expected]
        yield (
            "row means",
            tuple(row.expand_as(output).to(output.dtype) for output, row in zip(got, rows, strict=True)),
        )
    for name, value in inputs.items():
        if all(value.shape == output.shape for output in got):
            yield f"copy of {name}", tuple(value.to(output.dtype) for output in got)


def baseline_report(task: Task) -> dict[str, Any]:
    """Return, by case, the used shares of the tolerance per seed, for the baseline and for degenerate answers."""
    problem = load(task.folder / "problem.py")
    solve = getattr(load(task.folder / "baseline.py"), task.entry_points[0].name)
    report: dict[str, Any] = {}
    for case in task.cases:
        shares, degenerates = [], {}
        unchanged = True
        for seed in BASELINE_SEEDS:
            inputs = draw_inputs(problem, task, case, seed)
            copies = {name: value.clone() for name, value in inputs.items()}
            expected = as_tuple(problem.oracle(**inputs))
            got = as_tuple(solve(**inputs))
            unchanged = unchanged and all(torch.equal(copies[name], inputs[name]) for name in copies)
            shares.append(excess(task, case, expected, got))
            for name, answer in degenerate(inputs, expected, got):
                degenerates.setdefault(name, []).append(excess(task, case, expected, answer))
        report[case.name] = {
            "shares": shares,
            "unchanged": unchanged,
            "degenerate": degenerates,
        }
    return report


def variant_report(task: Task, variant: Variant, folder: Path) -> dict[str, list[float]]:
    """Return, by case, the used share of the tolerance per seed.

    If one failing case is enough, the first failing case ends the work; else only the required cases run.
    """
    problem = load(task.folder / "problem.py")
    file = folder / f"{abs(hash(variant.id))}.py"
    file.write_text(variant.source(baseline_source(task)))
    solve: Callable[..., Any] = getattr(load(file), task.entry_points[0].name)
    report: dict[str, list[float]] = {}
    for case in task.cases:
        if variant.required_in is not None and variant.required_in not in case.name:
            continue
        for seed in range(1 if variant.required_in is None else 2):
            inputs = draw_inputs(problem, task, case, seed)
            expected = as_tuple(problem.oracle(**inputs))
            with np.errstate(all="ignore"):
                got = as_tuple(solve(**inputs))
            report.setdefault(case.name, []).append(excess(task, case, expected, got))
        if variant.required_in is None and min(report[case.name]) > 1:
            break
    return report


def shapes_report(task: Task) -> dict[str, Any]:
    """Return, by case, names, shapes and dtypes of the inputs at `gpu` sizes; allocates no memory."""
    problem = load(task.folder / "problem.py")
    report = {}
    for case in task.cases:
        with FakeTensorMode():
            inputs = problem.make_inputs(case.gpu, getattr(torch, case.dtype), torch.Generator())
        report[case.name] = [
            [name, list(value.shape), str(value.dtype).removeprefix("torch."), value.is_contiguous()]
            for name, value in inputs.items()
        ]
    return report


def main() -> None:
    torch.set_num_threads(1)
    # The judge's corrections: without them some versions of triton and numpy cannot interpret `tl.dot`.
    interpreter.prepare(target("gfx942"))
    # New memory is filled with NaN: elements that a kernel does not write then never hold an old correct answer.
    torch.use_deterministic_algorithms(mode=True)
    tasks = {task.name: task for task in load_suite("starter")}
    with tempfile.TemporaryDirectory() as folder:
        report = {
            "baseline": {name: baseline_report(task) for name, task in tasks.items()},
            "documented": baseline_report(write_documented_task(Path(folder))),
            "shapes": {name: shapes_report(task) for name, task in tasks.items()},
            "variants": {
                variant.id: variant_report(tasks[variant.task], variant, Path(folder)) for variant in WRONG
            },
        }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
