"""Attempts judged and timed a minute, with instances that wait for one pool.

    .venv/bin/python -m benchmarks.throughput --devices 0 [--instances 9] [--attempts 3] [--slots N] [--think S] [--kernels DIR]
    .venv/bin/python -m benchmarks.throughput --simulate 8 [--attempts 3] [--slots N] [--think S]
    .venv/bin/python -m benchmarks.throughput --public --devices 0,1 [--attempts 3] [--slots N] [--think S]
    .venv/bin/python -m benchmarks.throughput --lone 0

`--instances` instances (default 9) take the nine tasks by turns and propose `--attempts` kernels each (default 3). The next
proposal of an instance comes when the verdict on its last one is there. The kernels are the tasks' baselines, or the files
`TASK.py` of `--kernels`, each with a different last line. A second table has each case's times and their spread. No model takes
part: `--think` seconds pass between verdict and proposal (default 0).

`--devices` judges on real GPUs at full sizes. `--simulate N` needs no GPU: the pool, its slots, leases and batches are real, for
N simulated GPUs of 140 GiB and 16 cores each. Judging is replaced by sleeps of `PHASES_S`, so the figures show the scheduling.
`--public` first records the twelve tasks of `benchmarks/public_kernels` on the devices, outside the measured time. Each instance
takes one task, and its last attempt has an exam. Stages of exams have rows of their own. It runs on `--devices cpu` too.
`--lone` measures what a person waits for: `wavedeck eval` of softmax, and the first two evaluations of a cold pool.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from rich.console import Console
from rich.table import Table

from harness import Device, DevicePool, Evaluation, Identity, Latency, Verdict, evaluate
from harness.node.leases import VARIABLE
from harness.node.selection import targets_for
from harness.processes.slot import Slot
from harness.processes.starting.servers import ForkServer
from harness.recording.recorder import record_task
from harness.stages.modes import USUAL_MODE, Exam, Mode
from harness.stages.retries import BESIDE_OTHERS
from suites import Task, baseline_source, load_task

from .public_kernels import public_tasks

TASKS = (
    *("softmax", "layer_norm", "cross_entropy", "matmul", "flip", "rms_norm_residual", "matmul_w8a8"),
    *("wavedeck-bench/swiglu", "wavedeck-bench/dequantize_rowwise"),
)
ATTEMPTS = 3
LONE_RUNS = 3
SEED = 1


class Phases(NamedTuple):
    """Seconds of one attempt, as measured on H100s; and its GPU contexts, which the driver makes one after the other."""

    before: float = 3.0
    """Static checks, the interpreter's first case, compiling: no lease."""
    calls: float = 3.6
    """Call, execution and integrity: shared lease, in pieces of one call."""
    recording: float = 0.5
    """Import, compiling and recording in the recorder: shared lease."""
    timing: float = 2.3
    """Exclusive lease."""
    ending: float = 0.4
    """A recorder that ends."""
    contexts: int = 2
    """The guest's and the recorder's."""
    context: float = 0.2
    start: float = 6.0
    """Start of the servers, which import torch."""


CONTEXTS_A_SLOT, CONTEXTS_A_GPU = 1, 3
"""Contexts at the start: a judge for each slot; two players and a builder of launchers for each GPU."""
PHASES_S = Phases()
CALLS = 50
PACE = 4.0
"""A simulation runs so many times faster; its figures are in seconds of the real thing."""
SIMULATED_BYTES = 140 << 30
SIMULATED_CORES = 16


class Judged(NamedTuple):
    """One attempt: seconds from proposal to verdict, when the verdict came (by `time.perf_counter`), and the verdict."""

    seconds: float
    at_s: float
    verdict: str
    alone: bool
    """Whether it was judged again alone, because the GPU was full."""
    exam: bool = False
    task: str = ""
    latency: tuple[Latency, ...] = ()
    stages: tuple[tuple[str, float], ...] = ()
    """Names and seconds."""


Judge = Callable[[DevicePool, Task, str, Mode], Awaitable[Evaluation | None]]


def load_tasks(instances: int) -> list[Task]:
    """Return the task of each instance."""
    tasks = [load_task(name) for name in TASKS]
    return [tasks[number % len(tasks)] for number in range(instances)]


async def run_instances(
    pool: DevicePool,
    tasks: Sequence[Task],
    attempts: int,
    judge: Judge,
    *,
    think_s: float,
    kernels: Path | None = None,
    exams: bool = False,
) -> list[Judged]:
    """Let one instance for each of `tasks` propose its attempts, and return all of them; with `exams` also one exam each."""
    judged: list[Judged] = []

    async def propose(task: Task, instance: int) -> None:
        own = baseline_source(task) if kernels is None else (kernels / f"{task.name}.py").read_text("utf-8")
        for number in range(attempts + exams):
            mode = Exam() if number == attempts else USUAL_MODE
            source = f"{own}\nNUMBER = {instance}, {min(number, attempts - 1)}\n"
            began = time.perf_counter()
            evaluation = await judge(pool, task, source, mode)
            at_s = time.perf_counter()
            seconds = at_s - began
            await asyncio.sleep(think_s)
            if evaluation is None:
                judged.append(Judged(seconds, at_s, Verdict.CORRECT, alone=False))
            else:
                judged.append(
                    Judged(
                        seconds,
                        at_s,
                        evaluation.verdict,
                        alone=any(BESIDE_OTHERS in note for note in evaluation.notes),
                        exam=mode != USUAL_MODE,
                        task=task.name,
                        latency=evaluation.latency,
                        stages=(
                            *((stage.name, stage.seconds) for stage in evaluation.stages),
                            *phases_of_timing(evaluation),
                        ),
                    )
                )

    async with asyncio.TaskGroup() as group:
        for instance, task in enumerate(tasks):
            group.create_task(propose(task, instance), name=f"{task.name}#{instance}")
    return judged


def phases_of_timing(evaluation: Evaluation) -> list[tuple[str, float]]:
    """Return name and seconds of each phase of the stage `performance`."""
    phases = next((fact.value for fact in evaluation.facts if fact.name == "time of timing"), "")
    return [
        (f"timing: {name}", float(spent)) for name, spent in re.findall(r"(\D+) ([\d.]+) s(?:, )?", phases)
    ]


async def judge_really(pool: DevicePool, task: Task, source: str, mode: Mode = USUAL_MODE) -> Evaluation:
    """Judge and time on a GPU."""
    targets = targets_for(pool.devices)
    return await evaluate(source, task, pool, mode, targets=targets, seed=SEED)


class Driver:
    """The driver of a simulated node, which makes one GPU context after the other."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def make_contexts(self, count: int) -> None:
        """Wait until so many contexts are made."""
        for _ in range(count):
            async with self._turn:
                await asyncio.sleep(PHASES_S.context / PACE)

    async def judge(self, pool: DevicePool, _task: Task, _source: str, _mode: Mode) -> None:
        """Hold slot and leases as a real evaluation does, and sleep."""
        async with pool.slot() as slot:
            await asyncio.sleep(PHASES_S.before / PACE)
            await pool.judge_on(slot, lambda: self._judge_on(pool, slot))

    async def _judge_on(self, pool: DevicePool, slot: Slot) -> Evaluation:
        """Sleep through the phases of one attempt that need the GPU."""
        async with pool.leases.using(slot):
            await self.make_contexts(PHASES_S.contexts)
            for _ in range(CALLS):
                await pool.leases.let_timing_pass(slot)
                await asyncio.sleep(PHASES_S.calls / CALLS / PACE)
            await asyncio.sleep(PHASES_S.recording / PACE)
            async with pool.leases.timing(slot):
                await asyncio.sleep(PHASES_S.timing / PACE)
                pool.leases.release_after(slot, asyncio.sleep(PHASES_S.ending / PACE))
        return mock.Mock(verdict=Verdict.CORRECT, error=None)


def report(
    judged: Sequence[Judged], pool: DevicePool, wall_s: float, *, opened_s: float, pace: float = 1.0
) -> Table:
    """Return the table of one run; `pace` converts seconds of a simulation. `opened_s`: when the pool began to open."""
    seconds = [pace * attempt.seconds for attempt in judged]
    lost = [attempt for attempt in judged if attempt.verdict != Verdict.CORRECT]
    held_s = pool.leases.exclusive_s / len(judged)
    table = Table("what", "figure")
    table.add_row("slots", str(pool.slots))
    table.add_row("attempts", str(len(judged)))
    table.add_row("attempts judged and timed a minute", f"{60 * len(judged) / (pace * wall_s):.1f}")
    first_s = min(attempt.at_s for attempt in judged) - opened_s
    table.add_row("first verdict, with the start of the pool", f"{pace * first_s:.1f} s")
    table.add_row("proposal to verdict, median", f"{statistics.median(seconds):.1f} s")
    table.add_row("proposal to verdict, worst", f"{max(seconds):.1f} s")
    table.add_row("exclusive lease held an attempt, mean", f"{pace * held_s:.1f} s")
    stages: dict[str, list[float]] = {}
    for attempt in judged:
        for name, stage_s in attempt.stages:
            stages.setdefault(f"{'exam, ' if attempt.exam else ''}stage {name}", []).append(stage_s)
    for name, of_stage in stages.items():
        table.add_row(f"{name}, mean; worst", f"{statistics.fmean(of_stage):.1f}; {max(of_stage):.1f} s")
    table.add_row("timings", str(pool.leases.timings))
    servers = (pool.interpreting, pool.compiling)
    contexts = sum(server.contexts for server in servers)
    processes = sum(server.processes for server in servers)
    table.add_row("GPU contexts an attempt, mean", f"{contexts / len(judged):.1f}")
    table.add_row("processes an attempt, mean, wardens included", f"{processes / len(judged):.1f}")
    table.add_row("judged again alone: the GPU was full", str(sum(attempt.alone for attempt in judged)))
    table.add_row(
        "attempts lost", " ".join([str(len(lost)), *sorted({str(attempt.verdict) for attempt in lost})])
    )
    return table


def report_cases(judged: Sequence[Judged]) -> Table:
    """Return the table of cases: medians over the attempts, and how far the candidate's times lie apart."""
    by_case: dict[tuple[str, str], list[Latency]] = {}
    for attempt in judged:
        for latency in attempt.latency:
            by_case.setdefault((attempt.task, latency.case), []).append(latency)
    table = Table("task", "case", "timed by", "baseline, us", "candidate, us", "speedup", "spread")
    for (task, case), latencies in sorted(by_case.items()):
        times_ms = [latency.candidate_ms for latency in latencies]
        speedups = [latency.speedup for latency in latencies if latency.speedup is not None]
        first = latencies[0]
        table.add_row(
            *(task, case, f"{first.method.value}{', hot' if first.cache == 'hot' else ''}"),
            f"{statistics.median(latency.baseline_ms for latency in latencies) * 1e3:.4g}",
            f"{statistics.median(times_ms) * 1e3:.4g}",
            f"{first.bound.sign}{statistics.median(speedups):.2f}x" if speedups else first.outcome.value,
            f"{max(times_ms) / min(times_ms) - 1:.2%}",
        )
    return table


async def measure(
    devices: Sequence[str],
    instances: int,
    attempts: int,
    slots: int | None,
    think_s: float,
    console: Console,
    kernels: Path | None = None,
    *,
    public: bool = False,
) -> int:
    """Measure on real GPUs. Return 1 if an attempt is not correct."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = await record_public(devices, Path(folder)) if public else load_tasks(instances)
        return await measure_tasks(devices, tasks, attempts, slots, think_s, console, kernels, exams=public)


async def record_public(devices: Sequence[str], folder: Path) -> list[Task]:
    """Record the public-shaped tasks on the devices, and return them."""
    async with DevicePool(devices, timed=False) as pool:
        first = targets_for(pool.devices)[0]
        return [
            await record_task(public, folder / "recorded" / public.name, pool=pool, target=first)
            for public in public_tasks(folder)
        ]


async def measure_tasks(
    devices: Sequence[str],
    tasks: Sequence[Task],
    attempts: int,
    slots: int | None,
    think_s: float,
    console: Console,
    kernels: Path | None,
    *,
    exams: bool,
) -> int:
    """Measure one instance for each of `tasks`. Return 1 if an attempt is not correct."""
    opened_s = time.perf_counter()
    async with DevicePool(devices, slots=slots, tasks=tasks) as pool:
        began = time.perf_counter()
        judged = await run_instances(
            pool, tasks, attempts, judge_really, think_s=think_s, kernels=kernels, exams=exams
        )
        wall_s = time.perf_counter() - began
        await pool.leases.close()
        console.print(report(judged, pool, wall_s, opened_s=opened_s))
        console.print(report_cases(judged))
    return int(any(attempt.verdict != Verdict.CORRECT for attempt in judged))


async def simulate(
    count: int, instances: int, attempts: int, slots: int | None, think_s: float, console: Console
) -> int:
    """Measure the scheduling with simulated GPUs."""
    gpus = tuple(
        Device(
            name=str(number),
            kind="cuda",
            package=f"simulated-{number}",
            identity=Identity(model="simulated", memory_bytes=SIMULATED_BYTES),
        )
        for number in range(count)
    )
    tasks = load_tasks(instances)

    async def start(_server: ForkServer) -> None:
        """No process is needed."""

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {VARIABLE: str(Path(folder) / "leases")}),
        mock.patch("harness.processes.pool.choose_devices", return_value=gpus),
        mock.patch("harness.processes.pool.own_cores", return_value=count * SIMULATED_CORES),
        mock.patch.object(ForkServer, "start", start),
    ):
        async with DevicePool(("simulated",), slots=slots, tasks=tasks) as pool:
            driver = Driver()
            began = time.perf_counter()
            await asyncio.sleep(PHASES_S.start / PACE)
            await driver.make_contexts(CONTEXTS_A_GPU * count + CONTEXTS_A_SLOT * pool.slots)
            judged = await run_instances(pool, tasks, attempts, driver.judge, think_s=think_s / PACE)
            wall_s = time.perf_counter() - began
            await pool.leases.close()
            sleeps = ", ".join(f"{phase} {value:g}" for phase, value in PHASES_S._asdict().items())
            console.print(f"{count} simulated GPUs; no judge runs, only sleeps (seconds): {sleeps}")
            console.print(report(judged, pool, wall_s, opened_s=began, pace=PACE))
    return 0


async def measure_lone(device: str, console: Console) -> int:
    """Measure `wavedeck eval` of softmax, and the first evaluations of a cold pool."""
    task = load_task("softmax")
    wavedeck = Path(sys.executable).with_name("wavedeck")
    command = [
        *(str(wavedeck), "eval", str(task.folder / "baseline.py")),
        *("--task", "softmax", "--devices", device, "--seed", "1", "--json"),
    ]
    lone, cold, second, codes = [], [], [], set()
    for _ in range(LONE_RUNS):
        began = time.perf_counter()
        codes.add(subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode)  # noqa: ASYNC221
        lone.append(time.perf_counter() - began)
        began = time.perf_counter()
        async with DevicePool((device,), tasks=[task]) as pool:
            for times in (cold, second):
                evaluation = await judge_really(pool, task, baseline_source(task))
                times.append(time.perf_counter() - began)
                codes.add(int(evaluation.verdict != Verdict.CORRECT))
                began = time.perf_counter()
    table = Table("what", "median", "all, s")
    for what, seconds in (
        ("lone wavedeck eval, softmax", lone),
        ("first evaluation of a cold pool, with its start", cold),
        ("second evaluation of that pool", second),
    ):
        shown = " ".join(f"{value:.1f}" for value in seconds)
        table.add_row(what, f"{statistics.median(seconds):.1f} s", shown)
    console.print(table)
    return int(codes != {0})


def main() -> int:
    """Run what the options ask for."""
    parser = argparse.ArgumentParser(description="Attempts judged and timed a minute.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--devices", help="real GPUs, as 0 or 0,1")
    what.add_argument("--simulate", type=int, metavar="N", help="N simulated GPUs")
    what.add_argument("--lone", metavar="DEVICE", help="a lone evaluation on this device")
    parser.add_argument(
        "--public", action="store_true", help="twelve recorded tasks, with exams; with --devices"
    )
    parser.add_argument("--instances", type=int, default=len(TASKS))
    parser.add_argument("--attempts", type=int, default=ATTEMPTS, help="of each instance")
    parser.add_argument("--slots", type=int, help="instead of the rule's number")
    parser.add_argument("--think", type=float, default=0.0, help="seconds between verdict and next proposal")
    parser.add_argument("--kernels", type=Path, metavar="FOLDER", help="kernels to judge, one TASK.py a task")
    options = parser.parse_args()
    console = Console(width=110)
    if options.lone:
        return asyncio.run(measure_lone(options.lone, console))
    run = options.instances, options.attempts, options.slots, options.think, console
    if options.simulate:
        return asyncio.run(simulate(options.simulate, *run))
    return asyncio.run(measure(options.devices.split(","), *run, options.kernels, public=options.public))


if __name__ == "__main__":
    sys.exit(main())
