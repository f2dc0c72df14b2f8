"""Time of one evaluation on a device: start of the judge, then each starter baseline, cold and warm.

    .venv/bin/python -m benchmarks.evaluate_starter [DEVICE]

Wall seconds of one run. The first evaluation of a task includes compilation; the second does not. Compare ratios within a
run, not figures between machines.
"""

from __future__ import annotations

import asyncio
import sys
import time

from rich.console import Console
from rich.table import Table

from benchmarks.usage import arguments
from harness import STAGES, DevicePool, Evaluation, evaluate, target
from suites import Task, baseline_source, load_suite

SEED = 1


async def judged(task: Task, pool: DevicePool) -> tuple[float, Evaluation]:
    """Return the wall seconds and the result of one evaluation of the task's baseline."""
    started = time.perf_counter()
    evaluation = await evaluate(baseline_source(task), task, pool, targets=(target("gfx942"),), seed=SEED)
    return time.perf_counter() - started, evaluation


async def main(device: str) -> int:
    """Print the table. Return 1 if a baseline is not correct, because its times are then meaningless."""
    table = Table("task", "verdict", "first, s", "second, s", *(f"{stage}, s" for stage in STAGES[:5]))
    console = Console(width=140)
    started = time.perf_counter()
    correct = True
    async with DevicePool((device,), slots=1) as pool:
        ready = time.perf_counter() - started
        for task in load_suite("starter"):
            first, _ = await judged(task, pool)
            second, evaluation = await judged(task, pool)
            stages = [f"{stage.seconds:.2f}" for stage in evaluation.stages[:5]]
            table.add_row(task.name, evaluation.verdict, f"{first:.2f}", f"{second:.2f}", *stages)
            correct = correct and evaluation.verdict == "correct"
            console.print(f"{task.name}: {evaluation.verdict} {evaluation.error or ''}")
        software = pool.software
    console.print(f"judge ready after {ready:.2f} s; torch {software.torch}, triton {software.triton}")
    console.print(table)
    return 0 if correct else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*arguments(__doc__)[:1] or ["cpu"])))
