"""Evaluations a minute on device `cpu`: this judge beside a fresh interpreter a stage, the way of today's tools.

    .venv/bin/python -m benchmarks.harness_throughput [KERNELS]

Both judge the same short kernels (KERNELS of them, 24 unless said, the other way two of each task; each text differs, so
nothing is known from before) with the same checks, the same number at once, in turns within one run. The other way starts
five interpreters for each kernel, which import torch and triton: for the call, to compile, to run every case and its replay,
for the repeats and theirs, and for the sample at `gpu` sizes (`benchmarks/fresh_stage.py`). Then the CPU seconds of both, where the time of this judge goes, and how long a cancelled
evaluation's guest lives.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from harness import STAGES, DevicePool, Evaluation, StageEntered, StageLeft, evaluate, target
from suites import Task, baseline_source, load_task

SHORT = ("vector_add", "softmax", "layer_norm", "rms_norm_residual")
STAGES_OF_THE_OTHER = ("call", "compile", "execution", "integrity", "estimate")
KERNELS = 24
SEED = 1
CANCELS = 10
ENDLESS = "\n\n_{name} = {name}\n\ndef {name}({signature}):\n    while True: pass\n"


def kernels(count: int) -> list[tuple[Task, str]]:
    """Baselines of short tasks, each with a line of its own."""
    tasks = [load_task(name) for name in SHORT]
    return [
        (task, f"{baseline_source(task)}\nNUMBER = {number}\n")
        for number, task in ((number, tasks[number % len(tasks)]) for number in range(count))
    ]


async def ours(pool: DevicePool, work: list[tuple[Task, str]]) -> tuple[float, list[Evaluation]]:
    """Wall seconds for all, and the evaluations."""
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(
                evaluate(source, task, pool=pool, targets=(target("gfx942"),), seed=SEED), name=task.name
            )
            for task, source in work
        ]
    return time.perf_counter() - started, [one.result() for one in asked]


async def theirs(work: list[tuple[Task, str]], at_once: int) -> dict[str, list[float]]:
    """Wall seconds of each stage of each kernel, and of all under `""`; `RuntimeError` when a stage does not pass."""
    turns = asyncio.Semaphore(at_once)
    seconds: dict[str, list[float]] = {stage: [] for stage in STAGES_OF_THE_OTHER}
    with tempfile.TemporaryDirectory(prefix="wavedeck-fresh-") as folder:
        files = [Path(folder) / f"{number}.py" for number in range(len(work))]
        for file, (task, source) in zip(files, work, strict=True):
            file.write_text(source, encoding="utf-8")
            await in_fresh_interpreter("specify", task, file)
        spent = cpu_of_ended_processes()
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for file, (task, _) in zip(files, work, strict=True):
                group.create_task(in_fresh_interpreters(task, file, turns, seconds), name=task.name)
        seconds[""] = [time.perf_counter() - started]
        seconds["cpu"] = [cpu_of_ended_processes() - spent]
    return seconds


async def in_fresh_interpreters(
    task: Task, file: Path, turns: asyncio.Semaphore, seconds: dict[str, list[float]]
) -> None:
    """One evaluation of the other way."""
    async with turns:
        for stage in STAGES_OF_THE_OTHER:
            started = time.perf_counter()
            await in_fresh_interpreter(stage, task, file)
            seconds[stage].append(time.perf_counter() - started)


async def in_fresh_interpreter(stage: str, task: Task, file: Path) -> None:
    """One stage."""
    command = (sys.executable, "-m", "benchmarks.fresh_stage", stage, task.name)
    process = await asyncio.create_subprocess_exec(*command, str(file), str(file.with_suffix(".specified")))
    if await process.wait() != 0:
        raise RuntimeError(f"{task.name}: stage {stage} did not pass")


def cpu_of_ended_processes() -> float:
    """CPU seconds of the children that were waited for, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of(pool: DevicePool) -> float:
    """CPU seconds of the engine and of the pool's servers with all that they started."""
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
            total += times.user + times.system
    return float(total)


async def seconds_to_end(pool: DevicePool) -> float:
    """From cancelling an evaluation whose kernel never returns to the end of the last process of its guest."""
    task = load_task("vector_add")
    source = baseline_source(task) + ENDLESS.format(name="vector_add", signature="x, y")
    server = psutil.Process(pool.interpreting.pid)
    before = {one.pid for one in server.children(recursive=True)}
    running = asyncio.Event()

    def watch(event: StageEntered | StageLeft) -> None:
        if isinstance(event, StageEntered) and event.stage == "call":
            running.set()

    asked = asyncio.create_task(
        evaluate(source, task, pool=pool, targets=(target("gfx942"),), seed=SEED, on_event=watch),
        name="cancelled",
    )
    await running.wait()
    tree = {one.pid for one in server.children(recursive=True)} - before
    started = time.perf_counter()
    asked.cancel()
    while any(psutil.pid_exists(pid) for pid in tree):  # noqa: ASYNC110 -- processes of the system set no event
        await asyncio.sleep(0.005)
    return time.perf_counter() - started


async def main() -> int:
    """Print both rates, their ratio, the profiles, and the time to end; 1 when a kernel was not correct."""
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else KERNELS
    count = max(
        asked - asked % (2 * len(SHORT)), 2 * len(SHORT)
    )  # both ways judge every task as often as the others
    at_once = len(os.sched_getaffinity(0))
    async with DevicePool(("cpu",), slots=at_once) as pool:
        await ours(pool, kernels(2 * at_once * len(SHORT)))  # judges load their problems once a session
        own, own_cpu, evaluations = 0.0, 0.0, list[Evaluation]()
        fresh: dict[str, list[float]] = {}
        work = kernels(count)
        half = count // 2
        shares = [
            part[: len(SHORT)] for part in (work[:half], work[half:])
        ]  # the other way's rate shows in fewer
        for part, share in zip((work[:half], work[half:]), shares, strict=True):
            spent = cpu_of(pool)
            seconds, found = await ours(pool, part)
            own += seconds
            own_cpu += cpu_of(pool) - spent
            evaluations += found
            for stage, took in (await theirs(share, at_once)).items():
                fresh.setdefault(stage, []).extend(took)
        ends = [await seconds_to_end(pool) for _ in range(CANCELS)]
    wrong = [one for one in evaluations if one.verdict != "correct"]
    judged_fresh = sum(map(len, shares))
    all_fresh = sum(fresh[""])
    rate, other = 60 * count / own, 60 * judged_fresh / all_fresh
    console = Console(width=110)
    console.print(f"{at_once} at once; {count} kernels here, {judged_fresh} the other way")
    table = Table("way", "evaluations a minute", "wall seconds each, at once together", "CPU seconds each")
    table.add_row("this judge", f"{rate:.1f}", f"{own / count:.2f}", f"{own_cpu / count:.2f}")
    table.add_row(
        "a fresh interpreter a stage",
        f"{other:.2f}",
        f"{all_fresh / judged_fresh:.2f}",
        f"{sum(fresh['cpu']) / judged_fresh:.2f}",
    )
    console.print(table)
    console.print(f"ratio {rate / other:.1f}")
    profile = Table("stage", "median seconds", title="where this judge's time goes")
    for place, stage in enumerate(STAGES):
        profile.add_row(stage, f"{statistics.median(one.stages[place].seconds for one in evaluations):.3f}")
    console.print(profile)
    profile = Table("stage", "median seconds", title="where the time of fresh interpreters goes")
    for stage in STAGES_OF_THE_OTHER:
        profile.add_row(stage, f"{statistics.median(fresh[stage]):.3f}")
    console.print(profile)
    console.print(
        f"cancelled guests were gone after {statistics.median(ends):.3f} s (median), {max(ends):.3f} s (longest of {CANCELS})"
    )
    for one in wrong:
        console.print(f"not correct: {one.task} {one.verdict} {one.error}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
