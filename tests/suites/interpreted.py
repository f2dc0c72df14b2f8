"""Runs starter baselines and variants in Triton's interpreter and prints one JSON report.

A separate program, because the interpreter must be selected before the import of triton.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch

from harness import target
from harness.cases.judged_case import JudgedCase
from harness.worker.interpreter import interpreter
from harness.worker.oracle.answers import compare_output
from harness.worker.oracle.problem import Inputs, Problem
from suites import Case, Task, baseline_source, load_suite
from tests.suites.folders import write_documented_task
from tests.suites.variants import DRAWN, Variant

SEEDS = range(2 if os.environ.get("WAVEDECK_SOAK") == "1" else 1)


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def share(task: Task, problem: Problem, case: Case, inputs: Inputs, answer: Any) -> float:
    """Return the share of the tolerance that the worst element (or metric) uses; above 1 is wrong."""
    expected = problem.oracle(case, inputs)
    got = answer if isinstance(answer, tuple) else (answer,)
    compared = [
        compare_output(
            task, output, JudgedCase(case), value, truth, sizes=problem.sizes(case), noise=lambda: None
        )
        for output, value, truth in zip(task.outputs, got, expected, strict=True)
    ]
    if any(comparison.mismatch for comparison in compared):
        return float("inf")
    return max(margin.used for comparison in compared for margin in comparison.margins)


def baseline_report(task: Task) -> dict[str, Any]:
    """Return, by case, the used shares of the tolerance, and whether the inputs are unchanged."""
    problem = Problem(task)
    solve = getattr(load(task.folder / "baseline.py"), task.entry_points[0].name)
    report: dict[str, Any] = {}
    for case in task.cases:
        report[case.name] = {"shares": [], "unchanged": True}
        for seed in SEEDS:
            inputs = problem.inputs(case, seed, "baseline")
            copies = {name: value.clone() for name, value in inputs.items()}
            report[case.name]["shares"].append(share(task, problem, case, copies, solve(**inputs)))
            unchanged = all(torch.equal(copies[name], inputs[name]) for name in copies)
            report[case.name]["unchanged"] &= unchanged
    return report


def variant_report(task: Task, variant: Variant, folder: Path) -> dict[str, list[float]]:
    """Return, by case, the used share of the tolerance per seed.

    If one failing case is enough, the first failing case ends the work; else only the required cases run.
    """
    problem = Problem(task)
    file = folder / f"{abs(hash(variant.id))}.py"
    file.write_text(variant.source(baseline_source(task)))
    solve = getattr(load(file), task.entry_points[0].name)
    report: dict[str, list[float]] = {}
    for case in task.cases:
        if variant.required_in is not None and variant.required_in not in case.name:
            continue
        for seed in range(1 if variant.required_in is None else 2):
            inputs = problem.inputs(case, seed, "variant")
            with np.errstate(all="ignore"):
                answer = solve(**inputs)
            report.setdefault(case.name, []).append(share(task, problem, case, inputs, answer))
        if variant.required_in is None and min(report[case.name]) > 1:
            break
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
            "variants": {
                variant.id: variant_report(tasks[variant.task], variant, Path(folder)) for variant in DRAWN
            },
        }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
