"""Twelve tasks in the form of a public benchmark (TritonBench): kernels with autotuning, each with a test that calls them.

The kernels are our own. Ten are autotuned, and six make several launches in a call.
"""

from __future__ import annotations

from pathlib import Path

from suites.public.syntax.calls import test_calls
from suites.public.task import Part, PublicTask, SuiteKind, TestForm

from . import several_launches, single_launch

HEADER = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
KERNELS = single_launch.KERNELS | several_launches.KERNELS
"""Reference and test of each task, by name."""


def public_tasks(folder: Path) -> list[PublicTask]:
    """Return the tasks as a loader makes them from a clone at `folder`, which need not exist."""
    tasks = []
    for name, (reference, test) in KERNELS.items():
        calls = test_calls(HEADER + reference, HEADER + test, TestForm.SCRIPT, name)
        file = folder / f"{name}.py"
        tasks.append(
            PublicTask(
                suite="bench",
                kind=SuiteKind.TRITONBENCH_G,
                name=name,
                file=file.name,
                title=name,
                folder=folder,
                instruction=f"Write {name}.",
                entry_points=calls.entry_points,
                reference=Part(file, HEADER + reference),
                test=Part(file, calls.test),
                result_name=calls.result_name,
                modules=calls.modules,
            )
        )
    return tasks
