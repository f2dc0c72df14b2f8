"""CPU seconds of warm default evaluations on device `cpu`, by task, stage and process.

    .venv/bin/python -m benchmarks.warm_evaluations [ROUNDS]

Judges the baselines of four short starter tasks one at a time, ROUNDS times each (default 6). Each text differs, so that no
cache helps. A first round warms the judges and is not counted. Then the same kernels run two at a time, for evaluations per
minute. The last figure is the lifetime of a guest after its evaluation was cancelled.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.usage import arguments
from harness import STAGES, DevicePool, Evaluation, StageEvent, evaluate, target
from suites import Task, baseline_source, load_task

SHORT = ("vector_add", "softmax", "layer_norm", "rms_norm_residual")
ROUNDS = 6
AT_ONCE = 2
SEED = 1
CANCELS = 5
ENDLESS = "\n\n_{name} = {name}\n\ndef {name}({signature}):\n    while True: pass\n"


def sources(task: Task, rounds: int) -> list[str]:
    """Return the task's baseline several times, each with a different last line."""
    return [f"{baseline_source(task)}\nNUMBER = {number}\n" for number in range(rounds)]


def cpu_of(pool: DevicePool) -> float:
    """Return the CPU seconds of this process and of the pool's servers with their children."""
    own = psutil.Process().cpu_times()
    total = own.user + own.system
    for pid in {pool.interpreting.pid, pool.compiling.pid}:
        times = psutil.Process(pid).cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
        for child in psutil.Process(pid).children(recursive=True):
            try:
                times = child.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
    return float(total)


async def judged(pool: DevicePool, task: Task, source: str) -> Evaluation:
    """Run one default evaluation."""
    return await evaluate(source, task, pool, targets=(target("gfx942"),), seed=SEED)


async def seconds_to_end(pool: DevicePool) -> float:
    """Return the time from cancelling an endless kernel to the end of the last process of its guest."""
    task = load_task("vector_add")
    source = baseline_source(task) + ENDLESS.format(name="vector_add", signature="x, y")
    server = psutil.Process(pool.interpreting.pid)
    before = {child.pid for child in server.children(recursive=True)}
    running = asyncio.Event()

    def watch(event: StageEvent) -> None:
        if event.result is None and event.stage == "call":
            running.set()

    evaluation = asyncio.create_task(
        evaluate(source, task, pool, targets=(target("gfx942"),), seed=SEED, on_event=watch),
        name="cancelled",
    )
    await running.wait()
    tree = {child.pid for child in server.children(recursive=True)} - before
    started = time.perf_counter()
    evaluation.cancel()
    while any(psutil.pid_exists(pid) for pid in tree):  # noqa: ASYNC110 -- processes of the system set no event
        await asyncio.sleep(0.005)
    return time.perf_counter() - started


async def main() -> int:
    """Print the table. Return 1 if a kernel is not correct."""
    [rounds] = map(int, arguments(__doc__)[:1] or [ROUNDS])
    console = Console(width=110)
    tasks = [load_task(name) for name in SHORT]
    evaluations: list[Evaluation] = []
    table = Table("task", "CPU seconds", "wall seconds", *STAGES)
    means = []
    async with DevicePool(("cpu",), slots=AT_ONCE) as pool:
        for task in tasks:
            for _ in range(AT_ONCE):
                await judged(pool, task, baseline_source(task))
        for task in tasks:
            cpu, wall, judged_here = [], [], []
            for source in sources(task, rounds):
                spent, started = cpu_of(pool), time.perf_counter()
                judged_here.append(await judged(pool, task, source))
                wall.append(time.perf_counter() - started)
                cpu.append(cpu_of(pool) - spent)
            means.append(statistics.mean(cpu))
            stages = [
                f"{statistics.median(evaluation.stages[place].seconds for evaluation in judged_here):.2f}"
                for place in range(len(STAGES))
            ]
            table.add_row(task.name, f"{means[-1]:.2f}", f"{statistics.mean(wall):.2f}", *stages)
            evaluations += judged_here
        started = time.perf_counter()
        waiting = [(task, source) for task in tasks for source in sources(task, rounds + 1)[-2:]]
        async with asyncio.TaskGroup() as group:
            at_once = [group.create_task(judged(pool, *work), name=work[0].name) for work in waiting]
        rate = 60 * len(waiting) / (time.perf_counter() - started)
        evaluations += [task.result() for task in at_once]
        ends = [await seconds_to_end(pool) for _ in range(CANCELS)]
    console.print(table)
    console.print(f"mean of the four: {statistics.mean(means):.2f} CPU seconds")
    console.print(f"{AT_ONCE} at once: {rate:.1f} evaluations per minute")
    console.print(f"cancelled guests were gone after {statistics.median(ends):.3f} s (median of {CANCELS})")
    wrong = [evaluation for evaluation in evaluations if evaluation.verdict != "correct"]
    for evaluation in wrong:
        console.print(f"not correct: {evaluation.task} {evaluation.verdict} {evaluation.error}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
