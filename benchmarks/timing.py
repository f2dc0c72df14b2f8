"""What the clock is worth on a GPU.

.venv/bin/python -m benchmarks.timing DEVICE starter            every starter baseline judged and timed
.venv/bin/python -m benchmarks.timing DEVICE repeat TASK N      N times from scratch: spread of the reported medians, and
what is said of two kernels that are the same
.venv/bin/python -m benchmarks.timing DEVICE do_bench TASK...   beside `triton.testing.do_bench` in a process of its own
.venv/bin/python -m benchmarks.timing DEVICE short              one short kernel judged again and again: where its time goes
.venv/bin/python -m benchmarks.timing DEVICE tapes              how many of the adversarial set's honest kernels a launch tape holds
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

from harness import DevicePool, Evaluation, Latency, Outcome, evaluate, target
from harness.stages.timing.baselines import USUAL
from harness.stages.timing.conclusions import Timing
from harness.stages.timing.performance import Performance
from harness.wire.effort import WHOLE, Effort
from harness.wire.ratios import PAIRS_A_LOOK
from suites import Task, baseline_source, load_suite, load_task

SEED = 1
ROOT = Path(__file__).resolve().parent.parent
SHORT_RUNS = 6
REPLY_S = 5.0
"""Between two evaluations: less than any model takes for a kernel."""
HONEST = ROOT / "tests" / "adversarial" / "honest"
ONCE = Effort(pairs=2, looks=1, least_rounds=1, most_rounds=1)
"""Of what a whole effort takes, the tape is left."""
CONSOLE = Console(width=150)


async def timed(pool: DevicePool, task: Task, source: str, effort: Effort = WHOLE) -> Timing:
    """A source against the timing baseline, with nothing judged."""
    async with pool.slot() as slot:
        own = target(slot.device.target or "")
        performance = Performance(pool, slot, task.at_gpu_sizes, own, seed=SEED)
        return await performance.measure(
            await slot.channel(), source, rival=None, against=USUAL, effort=effort
        )


async def judged(pool: DevicePool, task: Task, source: str) -> Evaluation:
    """The whole cascade."""
    own = target(pool.devices[0].target or "")
    return await evaluate(source, task, pool=pool, targets=(own,), seed=SEED)


async def starter(pool: DevicePool) -> None:
    """Latencies of every baseline."""
    table = Table(
        "task",
        "case",
        "baseline us",
        "p10-p90",
        "plain us",
        "graph us",
        "floor us",
        "IOU %",
        "MFU %",
        "said",
        "by",
    )
    for task in load_suite("starter"):
        began = time.monotonic()
        found = await judged(pool, task, baseline_source(task))
        took = time.monotonic() - began
        stages = ", ".join(f"{stage.name} {stage.seconds:.1f}" for stage in found.stages)
        CONSOLE.print(f"{task.name}: {found.verdict}, {took:.1f} s ({stages})")
        for fact in found.facts:
            if fact.name in ("time of timing", "state of the caches") or fact.name.endswith("launch tape"):
                CONSOLE.print(f"  {fact.name}: {fact.value}")
        if found.error is not None:
            CONSOLE.print(f"  {found.error.message}\n{found.error.trace}\n{found.printed}")
        for note in found.notes:
            CONSOLE.print(f"  {note}")
        for each in found.latency:
            table.add_row(task.name, *_cells(each))
    CONSOLE.print(table)


def _cells(each: Latency) -> tuple[str, ...]:
    side = each.candidate
    assert side is not None
    return (
        each.case,
        f"{each.candidate_ms * 1e3:.2f}",
        f"{side.p10_ms * 1e3:.2f}-{side.p90_ms * 1e3:.2f}",
        "-" if side.plain_ms is None else f"{side.plain_ms * 1e3:.2f}",
        "-" if side.graph_ms is None else f"{side.graph_ms * 1e3:.2f}",
        "-" if each.floor_ms is None else f"{each.floor_ms * 1e3:.2f}",
        "-" if each.efficiency is None else f"{(each.efficiency.io_utilisation or 0) * 100:.1f}",
        "-" if each.efficiency is None else f"{(each.efficiency.mfu or 0) * 100:.1f}",
        each.outcome.value if each.speedup is None else f"{each.speedup:.4f} {each.outcome.value}",
        each.confirmed,
    )


async def repeat(pool: DevicePool, task: Task, times: int) -> None:
    """Medians of the same kernel, measured from scratch again and again, against itself."""
    found = [await timed(pool, task, baseline_source(task)) for _ in range(times)]
    table = Table(
        "case", "median us", "least", "most", "spread %", "ratio from", "to", *(one.value for one in Outcome)
    )
    for case in task.open_cases:
        rows = [row for timing in found for row in timing.latency if row.case == case.name]
        medians = [row.candidate_ms * 1e3 for row in rows]
        ratios = [row.speedup for row in rows if row.speedup is not None]
        if not medians:
            CONSOLE.print(f"{case.name}: {found[0].detail}")
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
    """Its word, from one fresh process."""
    command = [sys.executable, "-m", "benchmarks.do_bench", task]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


async def beside_do_bench(pool: DevicePool, tasks: list[Task]) -> None:
    """The same kernels under both, each the median of as many processes."""
    table = Table(
        "task", "case", "this clock us", "do_bench us", "difference %", "do_bench, reading us", "difference %"
    )
    for task in tasks:
        theirs = [await asyncio.to_thread(_do_bench, task.name) for _ in range(PAIRS_A_LOOK)]
        timing = await timed(pool, task, baseline_source(task))
        for row in timing.latency:
            filling, reading = (
                statistics.median(found[row.case][way] for found in theirs) for way in range(2)
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
    """Sizes of the interpreter on the GPU: nothing but the machinery takes time."""
    task = load_task("vector_add")
    cases = tuple(msgspec.structs.replace(case, gpu=case.cpu) for case in task.cases)
    task = msgspec.structs.replace(task, cases=cases)
    took: dict[float, list[float]] = {0.0: [], REPLY_S: []}
    for number in range(2 * SHORT_RUNS):
        pause_s = (REPLY_S, 0.0)[number % 2]
        await asyncio.sleep(pause_s)
        began = time.monotonic()
        found = await judged(pool, task, f"{baseline_source(task)}\nNUMBER = {number}\n")
        seconds = time.monotonic() - began
        took[pause_s].append(seconds)
        stages = ", ".join(f"{stage.name} {stage.seconds:.2f}" for stage in found.stages)
        spent = [fact.value for fact in found.facts if fact.name == "time of timing"]
        CONSOLE.print(f"{found.verdict} in {seconds:.2f} s, {pause_s:g} s after the last: {stages}")
        CONSOLE.print(f"  {found.stages[-1].detail}")
        CONSOLE.print(f"  timing: {'; '.join(spent)}")
        if found.error is not None:
            CONSOLE.print(f"  {found.error.message}\n{found.error.trace}\n{found.printed}")
    for pause_s, seconds_each in took.items():
        later = seconds_each[1:]  # the first builds what a pool builds once
        said = f"{statistics.median(later):.2f} s in the median, {max(later):.2f} s at most"
        CONSOLE.print(f"{pause_s:g} s after the one before: {said} ({len(later)} evaluations)")


async def tapes(pool: DevicePool) -> None:
    """Each honest kernel in the first case of its task, at the interpreter's sizes."""
    held, reasons = 0, Counter[str]()
    files = sorted(HONEST.glob("*.py"))
    for file in files:
        source = file.read_text(encoding="utf-8")
        named = re.search(r'^TASK = "(\w+)"$', source, re.MULTILINE)
        assert named is not None, f"{file.name} names no task"
        task = load_task(named[1])
        first = msgspec.structs.replace(task.open_cases[0], gpu=task.open_cases[0].cpu)
        timing = await timed(pool, msgspec.structs.replace(task, cases=(first,)), source, ONCE)
        told = [fact.value for fact in timing.facts if fact.name.endswith("launch tape")]
        if told and not told[0].startswith("none: "):
            held += 1
        else:
            reasons[told[0].removeprefix("none: ") if told else timing.detail] += 1
            CONSOLE.print(f"{file.stem}: {told[0] if told else timing.detail}")
    CONSOLE.print(f"{held} of {len(files)} honest kernels: their tape was played, with right outputs")
    for reason, count in reasons.most_common():
        CONSOLE.print(f"  {count}: {reason}")


async def main() -> None:
    """As asked."""
    device, what, *rest = sys.argv[1:]
    async with DevicePool((device,), slots=1) as pool:
        if what == "starter":
            await starter(pool)
        elif what == "repeat":
            await repeat(pool, load_task(rest[0]), int(rest[1]))
        elif what == "do_bench":
            await beside_do_bench(pool, [load_task(name) for name in rest])
        elif what == "tapes":
            await tapes(pool)
        else:
            await short(pool)


if __name__ == "__main__":
    asyncio.run(main())
