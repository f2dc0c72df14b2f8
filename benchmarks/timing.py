"""Accuracy and cost of the clock on a GPU.

.venv/bin/python -m benchmarks.timing DEVICE starter            every starter baseline judged and timed
.venv/bin/python -m benchmarks.timing DEVICE repeat TASK N      N times from scratch: spread of the reported medians, and
outcomes for two equal kernels
.venv/bin/python -m benchmarks.timing DEVICE do_bench TASK...   compared with `triton.testing.do_bench` in its own process
.venv/bin/python -m benchmarks.timing DEVICE short              one short kernel judged several times: time by stage
.venv/bin/python -m benchmarks.timing DEVICE tapes              honest kernels that work with a launch tape
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.usage import arguments
from harness import DevicePool, Evaluation, Latency, Outcome, evaluate, target
from harness.stages.judged_task import resolve_task
from harness.stages.timing.baselines import USUAL
from harness.stages.timing.conclusions import Timing
from harness.stages.timing.performance import Performance
from harness.wire.messages.clock import WHOLE, Effort
from harness.wire.results.ratios import PAIRS_A_LOOK
from suites import Task, baseline_source, load_suite, load_task
from suites.folder import read_task

SEED = 1
ROOT = Path(__file__).resolve().parent.parent
SHORT_RUNS = 6
REPLY_S = 5.0
"""Pause between two evaluations: shorter than any model needs for a kernel."""
HONEST = (ROOT / "tests" / "adversarial" / "honest", ROOT / "tests" / "honest" / "kernels")
HONEST_TASKS = ROOT / "tests" / "honest" / "tasks"
"""Tasks of honest kernels that fit no starter task."""
ONCE = Effort(pairs=2, looks=1, least_rounds=1, most_rounds=1)
"""Least effort that still uses the launch tape."""
CONSOLE = Console(width=150)


async def timed(pool: DevicePool, task: Task, source: str, effort: Effort = WHOLE) -> Timing:
    """Time a source against the timing baseline, without judging it."""
    async with pool.slot() as slot:
        own = target(slot.device.target or "")
        performance = Performance(pool, slot, resolve_task(task, own.name, on_gpu=True), own, seed=SEED)
        return await performance.measure(await slot.channel(), source, against=USUAL, effort=effort)


async def judged(pool: DevicePool, task: Task, source: str) -> Evaluation:
    """Run all stages of an evaluation."""
    own = target(pool.devices[0].target or "")
    return await evaluate(source, task, pool, targets=(own,), seed=SEED)


async def starter(pool: DevicePool) -> None:
    """Print the latencies of every starter baseline."""
    table = Table(
        "task",
        "case",
        "baseline us",
        "p10-p90",
        "plain us",
        "floor us",
        "IOU %",
        "MFU %",
        "outcome",
        "by",
    )
    for task in load_suite("starter"):
        began = time.monotonic()
        evaluation = await judged(pool, task, baseline_source(task))
        took = time.monotonic() - began
        stages = ", ".join(f"{stage.name} {stage.seconds:.1f}" for stage in evaluation.stages)
        CONSOLE.print(f"{task.name}: {evaluation.verdict}, {took:.1f} s ({stages})")
        for fact in evaluation.facts:
            if fact.name in ("time of timing", "state of the caches") or fact.name.endswith("launch tape"):
                CONSOLE.print(f"  {fact.name}: {fact.value}")
        if evaluation.error is not None:
            CONSOLE.print(f"  {evaluation.error.message}\n{evaluation.error.trace}\n{evaluation.printed}")
        for note in evaluation.notes:
            CONSOLE.print(f"  {note}")
        for row in evaluation.latency:
            table.add_row(task.name, *_cells(row))
    CONSOLE.print(table)


def _cells(row: Latency) -> tuple[str, ...]:
    side = row.candidate
    assert side is not None
    return (
        row.case,
        f"{row.candidate_ms * 1e3:.2f}",
        f"{side.p10_ms * 1e3:.2f}-{side.p90_ms * 1e3:.2f}",
        "-" if side.plain_ms is None else f"{side.plain_ms * 1e3:.2f}",
        "-" if row.floor_ms is None else f"{row.floor_ms * 1e3:.2f}",
        "-" if row.efficiency is None else f"{(row.efficiency.io_utilisation or 0) * 100:.1f}",
        "-" if row.efficiency is None else f"{(row.efficiency.mfu or 0) * 100:.1f}",
        row.outcome.value if row.speedup is None else f"{row.speedup:.4f} {row.outcome.value}",
        row.confirmed,
    )


async def repeat(pool: DevicePool, task: Task, times: int) -> None:
    """Print the medians of a kernel against itself, each measured from scratch."""
    timings = [await timed(pool, task, baseline_source(task)) for _ in range(times)]
    table = Table(
        "case",
        "median us",
        "least",
        "most",
        "spread %",
        "ratio from",
        "to",
        *(outcome.value for outcome in Outcome),
    )
    for case in task.open_cases:
        rows = [row for timing in timings for row in timing.latency if row.case == case.name]
        medians = [row.candidate_ms * 1e3 for row in rows]
        ratios = [row.speedup for row in rows if row.speedup is not None]
        if not medians:
            CONSOLE.print(f"{case.name}: {timings[0].detail}")
            continue
        middle = statistics.median(medians)
        table.add_row(
            case.name,
            *(f"{value:.2f}" for value in (middle, min(medians), max(medians))),
            f"{(max(medians) - min(medians)) / middle * 100:.2f}",
            f"{min(ratios):.4f}" if ratios else "-",
            f"{max(ratios):.4f}" if ratios else "-",
            *(str(sum(row.outcome is outcome for row in rows)) for outcome in Outcome),
        )
    CONSOLE.print(f"{task.name}, {times} times")
    CONSOLE.print(table)


def _do_bench(task: str) -> dict[str, list[float]]:
    command = [sys.executable, "-m", "benchmarks.do_bench", task]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    medians: dict[str, list[float]] = json.loads(done.stdout)
    return medians


async def compare_do_bench(pool: DevicePool, tasks: list[Task]) -> None:
    """Print the same kernels under both clocks; each figure is the median of equally many processes."""
    table = Table(
        "task", "case", "this clock us", "do_bench us", "difference %", "do_bench, reading us", "difference %"
    )
    for task in tasks:
        theirs = [await asyncio.to_thread(_do_bench, task.name) for _ in range(PAIRS_A_LOOK)]
        timing = await timed(pool, task, baseline_source(task))
        for row in timing.latency:
            filling, reading = (
                statistics.median(medians[row.case][way] for medians in theirs) for way in range(2)
            )
            table.add_row(
                task.name,
                row.case,
                f"{row.candidate_ms * 1e3:.2f}",
                f"{filling * 1e3:.2f}",
                f"{(row.candidate_ms / filling - 1) * 100:+.2f}",
                f"{reading * 1e3:.2f}",
                f"{(row.candidate_ms / reading - 1) * 100:+.2f}",
            )
    CONSOLE.print(table)


async def short(pool: DevicePool) -> None:
    """Judge a kernel at the interpreter's sizes on the GPU: all time is overhead."""
    task = load_task("vector_add")
    cases = tuple(msgspec.structs.replace(case, gpu=case.cpu) for case in task.cases)
    task = msgspec.structs.replace(task, cases=cases)
    took: dict[float, list[float]] = {0.0: [], REPLY_S: []}
    for number in range(2 * SHORT_RUNS):
        pause_s = (REPLY_S, 0.0)[number % 2]
        await asyncio.sleep(pause_s)
        began = time.monotonic()
        evaluation = await judged(pool, task, f"{baseline_source(task)}\nNUMBER = {number}\n")
        seconds = time.monotonic() - began
        took[pause_s].append(seconds)
        stages = ", ".join(f"{stage.name} {stage.seconds:.2f}" for stage in evaluation.stages)
        spent = [fact.value for fact in evaluation.facts if fact.name == "time of timing"]
        CONSOLE.print(
            f"{evaluation.verdict} in {seconds:.2f} s, {pause_s:g} s after the previous evaluation: {stages}"
        )
        CONSOLE.print(f"  {evaluation.stages[-1].detail}")
        CONSOLE.print(f"  timing: {'; '.join(spent)}")
        if evaluation.error is not None:
            CONSOLE.print(f"  {evaluation.error.message}\n{evaluation.error.trace}\n{evaluation.printed}")
    for pause_s, seconds_each in took.items():
        later = seconds_each[1:]  # the first one includes the set-up of the pool
        CONSOLE.print(
            f"{pause_s:g} s after the previous evaluation: {statistics.median(later):.2f} s in the median, "
            f"{max(later):.2f} s at most ({len(later)} evaluations)"
        )


async def tapes(pool: DevicePool) -> None:
    """Time each honest kernel in the first case of its task, at the interpreter's sizes."""
    played, reasons = 0, Counter[str]()
    files = [file for folder in HONEST for file in sorted(folder.glob("*.py"))]
    for file in files:
        source = file.read_text(encoding="utf-8")
        named = re.search(r'^TASK = "(\w+)"$', source, re.MULTILINE)
        assert named is not None, f"{file.name} names no task"
        own = HONEST_TASKS / named[1]
        task = read_task(own, suite="honest") if own.is_dir() else load_task(named[1])
        first = msgspec.structs.replace(task.open_cases[0], gpu=task.open_cases[0].cpu)
        timing = await timed(pool, msgspec.structs.replace(task, cases=(first,)), source, ONCE)
        facts = [fact.value for fact in timing.facts if fact.name.endswith("launch tape")]
        if facts and not facts[0].startswith("none: "):
            played += 1
        else:
            reasons[facts[0].removeprefix("none: ") if facts else timing.detail] += 1
            CONSOLE.print(f"{file.stem}: {facts[0] if facts else timing.detail}")
    CONSOLE.print(f"{played} of {len(files)} honest kernels: their tape was played, with correct outputs")
    for reason, count in reasons.most_common():
        CONSOLE.print(f"  {count}: {reason}")


async def main() -> None:
    """Run the benchmark that the command line names."""
    device, benchmark, *rest = arguments(__doc__)
    async with DevicePool((device,), slots=1) as pool:
        if benchmark == "starter":
            await starter(pool)
        elif benchmark == "repeat":
            await repeat(pool, load_task(rest[0]), int(rest[1]))
        elif benchmark == "do_bench":
            await compare_do_bench(pool, [load_task(name) for name in rest])
        elif benchmark == "tapes":
            await tapes(pool)
        else:
            await short(pool)


if __name__ == "__main__":
    asyncio.run(main())
