"""Kernels that an attempt, its exam and the next attempt compile, without a GPU: binaries, equal ones, seconds.

    .venv/bin/python -m benchmarks.compiles [TARGET]

Judges public-shaped kernels of `benchmarks/public_kernels` on `cpu` for TARGET (default gfx942): an attempt, its exam, the same
kernel with a changed wrapper, and that one's exam. `compiled`: kernels that no earlier row had compiled.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.usage import arguments
from harness import DevicePool, evaluate, target
from harness.recording.recorder import record_task
from harness.stages.modes import USUAL_MODE, Exam
from suites import baseline_source

from .public_kernels import public_tasks
from .warm_evaluations import cpu_of

TASKS = ("matmul", "layer_norm", "silu_and_mul", "softmax_of_gates")
SEED = 1
ENDING_S = 1.0
"""A process counts once it has ended."""
CHANGED = "\n\ndef unused_wrapper():\n    return None\n"


async def main() -> int:
    """Print the table. Return 1 if a kernel is not correct."""
    chosen = target(*arguments(__doc__)[:1] or ["gfx942"])
    console = Console(width=110)
    table = Table("task", "row", "binaries", "compiled", "compile stage, s", "CPU in all, s")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        async with DevicePool(("cpu",), slots=1) as pool:
            for public in public_tasks(Path(folder)):
                if public.name not in TASKS:
                    continue
                task = await record_task(
                    public, Path(folder) / "recorded" / public.name, pool=pool, target=chosen
                )
                source = baseline_source(task)
                for row, text, mode in (
                    ("attempt", source, USUAL_MODE),
                    ("exam", source, Exam()),
                    ("next attempt", source + CHANGED, USUAL_MODE),
                    ("its exam", source + CHANGED, Exam()),
                ):
                    await asyncio.sleep(ENDING_S)
                    spent, before = cpu_of(pool), pool.binaries.compiled
                    evaluation = await evaluate(text, task, pool, mode, targets=(chosen,), seed=SEED)
                    await asyncio.sleep(ENDING_S)
                    kernels = [
                        kernel for kernel in evaluation.resources.get(chosen.name, ()) if kernel.architecture
                    ]
                    seconds = next(stage.seconds for stage in evaluation.stages if stage.name == "compile")
                    table.add_row(
                        *(task.name, row, str(len(kernels)), str(pool.binaries.compiled - before)),
                        *(f"{seconds:.2f}", f"{cpu_of(pool) - spent:.2f}"),
                    )
                    wrong += evaluation.verdict != "correct"
                    if evaluation.error is not None:
                        console.print(f"{task.name}, {row}: {evaluation.error.first_line}")
    console.print(table)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
