"""Writes small valid task folders; tests replace single files with faulty text."""

from __future__ import annotations

import re
from pathlib import Path

from suites import Task
from suites.folder import read_task

TASK = """\
schema = 1
name = "double"
title = "Twice a vector"
category = "Math"
difficulty = 1
instruction = "Write `double(x)`."
outlier_inputs = ["x"]

[[entry_points]]
name = "double"
signature = "double(x)"

[[outputs]]
name = "out"

[tolerances]
float32 = { rtol = 1e-6, atol = 0.0 }

[[cases]]
name = "plain"
dtype = "float32"
cpu = { n = 100 }
gpu = { n = 1000000 }

[[cases]]
name = "outlier"
dtype = "float32"
distribution = "outlier"
cpu = { n = 100 }
gpu = { n = 1000000 }
"""
PROBLEM = """\
import torch


def make_inputs(sizes, dtype, generator):
    return {"x": torch.randn(sizes["n"], generator=generator).to(dtype)}


def oracle(x):
    return 2 * x.double()
"""
COST = """\
from suites import Cost, item_bytes


def cost(sizes, dtype):
    return Cost(sizes["n"], 2 * sizes["n"] * item_bytes(dtype))
"""
BASELINE = """\
def double(x):
    return x + x
"""


def write_folder(
    parent: Path,
    *,
    name: str = "double",
    task: str = TASK,
    problem: str = PROBLEM,
    cost: str = COST,
    baseline: str = BASELINE,
) -> Path:
    """Write a task folder and return its path; files that are not given are valid."""
    folder = parent / name
    folder.mkdir(parents=True)
    for file, text in {
        "task.toml": task,
        "problem.py": problem,
        "cost.py": cost,
        "baseline.py": baseline,
    }.items():
        (folder / file).write_text(text)
    return folder


def write_task(parent: Path, *, cost: str = COST) -> Task:
    """Write a task folder with this cost model and read the task."""
    return read_task(write_folder(parent, cost=cost), suite="mine")


def write_documented_task(parent: Path) -> Task:
    """Write and read the example task of `docs/tasks.md`."""
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
    blocks = re.findall(r"^`([a-z.]+)` [^\n]*:\n\n```[a-z]+\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    files = dict(blocks)
    folder = write_folder(
        parent,
        name="weighted_rows",
        task=files["task.toml"],
        problem=files["problem.py"],
        cost=files["cost.py"],
        baseline=files["baseline.py"],
    )
    return read_task(folder, suite="mine")
