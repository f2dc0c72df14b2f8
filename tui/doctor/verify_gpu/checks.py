"""The checks of `doctor --verify-gpu`, in order. A check asks the subject, and returns what it found with every figure."""

from __future__ import annotations

import asyncio
import math
import statistics
import time
import tomllib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from harness import Evaluation, Latency, Verdict
from harness.failures import first_failure
from harness.profiling.clock_comparison import LENGTHS_US, agrees, line
from harness.stages.timing.conclusions import tape_fact_name
from harness.wire.results.latency import Bound
from sessions.state.speed import speed_of
from suites import Task, baseline_source

from .subject import SEED, GpusUnderTest

T = TypeVar("T")
CHEATS = Path(__file__).parent / "cheats"
AT_ONCE = 4
"""Processes that get a context at the same time."""
NEAR_ONE = 0.01
"""A kernel against itself may differ from 1 by so much, whatever its interval."""
APART_SHARE = 0.1
"""Share of the cases against themselves that may be further from 1: of 20 intervals of 95 %, one misses by chance."""
REPEATS = 3
REPEATED = "softmax"
USUAL_SPREAD, LARGEST_SPREAD = 0.02, 0.05
"""Times of one kernel in several evaluations: the median case and the worst case may differ by so much."""
WITHOUT_GAIN = 1.02
"""A cheat may be right with at most this speedup: then it gains nothing."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The result of a check."""

    passed: bool
    words: str
    figures: dict[str, float | str | None] = field(default_factory=dict)


class Check(NamedTuple):
    """One check."""

    name: str
    description: str
    """The work of the check, in one line."""
    run: Callable[[GpusUnderTest], Awaitable[CheckOutcome]]


class Cheat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate that the judge must refuse, or that may not gain anything."""

    task: str
    trick: str
    source: str


class NothingTimed(Exception):
    """A check needs times that an earlier check did not bring."""


async def side_by_side(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of work done at the same time. If one fails, the others are cancelled and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in work]
    except ExceptionGroup as failures:
        raise first_failure(failures) from None
    return [task.result() for task in tasks]


async def ask_driver(subject: GpusUnderTest) -> CheckOutcome:
    """The facts that provenance needs, for each GPU."""
    missing: dict[str, None] = {}
    figures: dict[str, float | str | None] = {}
    for device in subject.devices:
        answer = await subject.ask_driver(device)
        provenance, state = answer.provenance, answer.state
        facts: dict[str, float | str | None] = {
            "driver": provenance.driver,
            "firmware": provenance.firmware,
            "power cap W": provenance.power_cap_w,
            "highest clock MHz": provenance.max_clock_mhz,
            "clock MHz": state.clock_mhz,
            "power W": state.power_w,
            "temperature C": state.hotspot_c,
            "memory bytes": state.memory_total_bytes,
        }
        figures |= {f"GPU {device.name} {name}": value for name, value in facts.items()}
        figures[f"GPU {device.name} source"] = answer.source or answer.note
        missing |= dict.fromkeys(name for name, value in facts.items() if value in (None, ""))
    if missing:
        return CheckOutcome(False, f"not reported: {', '.join(missing)}", figures)
    return CheckOutcome(True, f"driver {subject.provenance.driver}, all values reported", figures)


async def start(subject: GpusUnderTest) -> CheckOutcome:
    """The judge itself."""
    await subject.start()
    provenance = subject.provenance
    return CheckOutcome(True, f"torch {provenance.torch}, triton {provenance.triton}")


async def make_contexts(subject: GpusUnderTest) -> CheckOutcome:
    """Contexts alone and side by side, on each GPU."""
    wrong: list[str] = []
    figures: dict[str, float | str | None] = {}

    async def compute(count: int) -> float:
        began = time.monotonic()
        answers = await side_by_side(subject.compute(device) for _ in range(count))
        wrong.extend(f"GPU {device.name}: {answer}" for answer in answers if answer)
        return time.monotonic() - began

    for device in subject.devices:
        figures[f"GPU {device.name} s"] = await compute(1)
    device = subject.devices[0]
    figures[f"GPU {device.name} s, {AT_ONCE} at once"] = at_once = await compute(AT_ONCE)
    alone = [seconds for name, seconds in figures.items() if "at once" not in name]
    slowest = max(float(seconds or 0) for seconds in alone)
    words = f"{slowest:.1f} s alone, {at_once:.1f} s with {AT_ONCE} at once"
    return CheckOutcome(not wrong, "; ".join(dict.fromkeys(wrong)) or words, figures)


async def judge_baselines(subject: GpusUnderTest) -> CheckOutcome:
    """Each baseline of the starter suite as a candidate, against itself."""
    evaluations = await side_by_side(
        subject.judge(_baseline_name(task), baseline_source(task), task) for task in subject.tasks
    )
    wrong = [
        f"{task.name} {why_not(evaluation)}"
        for task, evaluation in zip(subject.tasks, evaluations, strict=True)
        if evaluation.verdict is not Verdict.CORRECT
    ]
    figures: dict[str, float | str | None] = {
        task.name: str(evaluation.verdict)
        for task, evaluation in zip(subject.tasks, evaluations, strict=True)
    }
    right = f"{len(evaluations) - len(wrong)} of {len(evaluations)} correct"
    return CheckOutcome(not wrong, "; ".join((right, *wrong)), figures)


def _baseline_name(task: Task) -> str:
    return f"honest/{task.name}"


def _judged_baselines(subject: GpusUnderTest) -> list[tuple[Task, Evaluation]]:
    """Return the tasks with a judged baseline, with its evaluations."""
    evaluations = ((task, subject.evaluations.get(_baseline_name(task))) for task in subject.tasks)
    return [(task, evaluation) for task, evaluation in evaluations if evaluation is not None]


def why_not(evaluation: Evaluation) -> str:
    """Return verdict and error of an evaluation in one line."""
    return f"{evaluation.verdict}: {evaluation.error.first_line}" if evaluation.error else evaluation.verdict


def honest_times(subject: GpusUnderTest) -> list[tuple[str, Latency]]:
    """Return the timed cases of the baselines, by `task/case`. Raises `NothingTimed` if there are none."""
    times = [
        (f"{task.name}/{latency.case}", latency)
        for task, evaluation in _judged_baselines(subject)
        for latency in evaluation.latency
    ]
    if not times:
        raise NothingTimed("no kernel was timed, so there is nothing to check")
    return times


async def compare_with_itself(subject: GpusUnderTest) -> CheckOutcome:
    """The ratio of each baseline to itself."""
    compared = [(name, row) for name, row in honest_times(subject) if row.speedup and row.bound is Bound.NONE]
    if not compared:
        return CheckOutcome(False, "all cases are too short for a ratio")
    apart = [name for name, row in compared if not is_near_one(row)]
    ratios = [row.speedup or 1.0 for _, row in compared]
    geomean = math.exp(statistics.fmean(map(math.log, ratios)))
    ends = f"ratios {min(ratios):.3f} to {max(ratios):.3f}, geometric mean {geomean:.4f}, {len(ratios)} cases"
    figures: dict[str, float | str | None] = {name: row.speedup for name, row in compared}
    allowed = max(1, math.floor(APART_SHARE * len(compared)))
    words = f"{ends}; not 1 within its interval: {', '.join(apart)}" if apart else ends
    return CheckOutcome(len(apart) <= allowed, words, figures)


def is_near_one(latency: Latency) -> bool:
    """True if the interval of a ratio contains 1, or the ratio is close to 1."""
    low, high = latency.ci or (1.0, 1.0)
    return low <= 1.0 <= high or abs((latency.speedup or 1.0) - 1) <= NEAR_ONE


async def play_tapes(subject: GpusUnderTest) -> CheckOutcome:
    """The share of the times that a process took which never saw the source."""
    times = honest_times(subject)
    without = [name for name, row in times if row.confirmed != "tape"]
    figures: dict[str, float | str | None] = {name: row.confirmed for name, row in times}
    figures |= {f"{name} floor us": row.floor_ms and row.floor_ms * 1e3 for name, row in times}
    figures |= {
        f"{task.name}/{fact.name}": fact.value
        for task, evaluation in _judged_baselines(subject)
        for fact in evaluation.facts
        if fact.name in map(tape_fact_name, (case.name for case in task.open_cases))
    }
    words = f"{len(times) - len(without)} of {len(times)} cases"
    return CheckOutcome(
        not without, f"{words}; without a tape: {', '.join(without)}" if without else words, figures
    )


async def read_counters(subject: GpusUnderTest) -> CheckOutcome:
    """Clock, power and heat during the timings."""
    windows = [(name, row.window) for name, row in honest_times(subject)]
    figures: dict[str, float | str | None] = {}
    for name, window in windows:
        if window is not None:
            figures[f"{name} clock MHz"] = window.clock_mhz
            figures[f"{name} power W"] = window.power_w
    clocks = [window.clock_mhz for _, window in windows if window is not None and window.clock_mhz]
    powers = [window.power_w for _, window in windows if window is not None and window.power_w]
    heats = [window.hotspot_c for _, window in windows if window is not None and window.hotspot_c]
    ends = (("clock", clocks, "MHz"), ("power", powers, "W"), ("temperature", heats, "C"))
    lacking = [name for name, values, _ in ends if not values]
    sampled = [
        f"{name} {min(values):.0f} to {max(values):.0f} {unit}" for name, values, unit in ends if values
    ]
    return CheckOutcome(
        not lacking,
        "; ".join((*sampled, f"not sampled: {', '.join(lacking)}") if lacking else sampled),
        figures,
    )


async def compare_clocks(subject: GpusUnderTest) -> CheckOutcome:
    """The clocks of the first GPU, and how far processes differ."""
    trial = await subject.compare_clocks(subject.devices[0])
    subject.graph_nodes = trial.graph_nodes
    clocks = {"events": trial.events_us, "graph": trial.graph_us, "rocprofv3": trial.profiler_us}
    figures: dict[str, float | str | None] = {
        f"{name} {length} us": us
        for name, times in clocks.items()
        for length, us in zip(LENGTHS_US, times, strict=False)
    }
    figures |= {f"process {number} us": us for number, us in enumerate(trial.processes_us, start=1)}
    figures |= {"largest graph": trial.nodes, "trusted graph": trial.graph_nodes}
    nodes = trial.graph_nodes
    words = [
        f"graphs of up to {nodes} calls are trusted" if nodes else "no graph is trusted, batches of calls are"
    ]
    for name, by, compared in (
        ("graph over events", trial.events_us, trial.graph_us),
        ("graph over rocprofv3", trial.profiler_us, trial.graph_us),
        ("events over rocprofv3", trial.profiler_us, trial.events_us),
    ):
        if fitted := line(by, compared):
            slope, constant_us = fitted
            words.append(f"{name}: slope {slope:.3f}, constant {constant_us:+.1f} us")
    if len(trial.processes_us) > 1:
        deviation = statistics.stdev(trial.processes_us) / statistics.fmean(trial.processes_us)
        figures["processes differ"] = deviation
        words.append(f"{len(trial.processes_us)} processes differ by {deviation:.2%} (standard deviation)")
    passed = trial.graph_nodes > 0 or agrees(trial.profiler_us, trial.events_us)
    return CheckOutcome(passed, "; ".join((*words, *trial.notes)), figures)


async def look_at_sandbox(subject: GpusUnderTest) -> CheckOutcome:
    """The layers around a process that has a GPU. `doctor` warns of layers that this system lacks; they do not count here."""
    layers = [layer for _, evaluation in _judged_baselines(subject) for layer in evaluation.sandbox]
    if not layers:
        raise NothingTimed("no candidate ran, so no layer was seen")
    inactive = {
        layer.name: f"{layer.name} {layer.state}" + (f" ({layer.why})" if layer.why else "")
        for layer in layers
        if layer.state != "active"
    }
    has_failed = any(layer.state == "failed" for layer in layers)
    figures: dict[str, float | str | None] = {layer.name: layer.state for layer in layers}
    words = f"not active: {', '.join(inactive.values())}" if inactive else "all layers are active"
    return CheckOutcome(not has_failed, words, figures)


async def repeat(subject: GpusUnderTest) -> CheckOutcome:
    """Times of one kernel in several evaluations, on each GPU."""
    task = next(task for task in subject.tasks if task.name == REPEATED)
    source = baseline_source(task)
    ranges: list[float] = []
    figures: dict[str, float | str | None] = {}
    by_device = await side_by_side(
        _judge_repeatedly(subject, source, task, device.name) for device in subject.devices
    )
    for device, evaluations in zip(subject.devices, by_device, strict=True):
        by_case: dict[str, list[float]] = {}
        for evaluation in evaluations:
            for row in evaluation.latency:
                by_case.setdefault(row.case, []).append(row.candidate_ms)
        for case, times in by_case.items():
            if len(times) == REPEATS:
                gpu_range = (max(times) - min(times)) / statistics.median(times)
                ranges.append(gpu_range)
                figures[f"GPU {device.name} {case} spread"] = gpu_range
    if not ranges:
        raise NothingTimed("no kernel was timed, so there is nothing to check")
    usual, largest = statistics.median(ranges), max(ranges)
    words = f"{usual:.1%} in the median case, {largest:.1%} in the worst"
    return CheckOutcome(usual <= USUAL_SPREAD and largest <= LARGEST_SPREAD, words, figures)


async def _judge_repeatedly(subject: GpusUnderTest, source: str, task: Task, device: str) -> list[Evaluation]:
    return [
        await subject.judge(f"repeats/{task.name}/{device}/{number}", source, task, seed=SEED, on=device)
        for number in range(1, REPEATS + 1)
    ]


def load_cheats() -> dict[str, Cheat]:
    """Return the cheats of the package, by name."""
    return {
        path.stem: msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Cheat)
        for path in sorted(CHEATS.glob("*.toml"))
    }


async def refuse_cheats(subject: GpusUnderTest) -> CheckOutcome:
    """Each cheat is refused, or right without a gain."""
    tasks = {task.name: task for task in subject.tasks}
    cheats = load_cheats()
    evaluations = await side_by_side(
        subject.judge(f"cheats/{name}", cheat.source, tasks[cheat.task]) for name, cheat in cheats.items()
    )
    judged = dict(zip(cheats, evaluations, strict=True))
    figures: dict[str, float | str | None] = {name: why_not(judged[name]) for name in judged}
    accepted = list(_gains(judged.items()))
    refused = sum(evaluation.verdict.is_failure for evaluation in evaluations)
    words = f"{refused} of {len(cheats)} refused"
    if refused + len(accepted) < len(cheats):
        words += f", {len(cheats) - refused - len(accepted)} right without a gain"
    return CheckOutcome(not accepted, "; ".join((words, *accepted)), figures)


def _gains(judged: Iterable[tuple[str, Evaluation]]) -> Iterable[str]:
    """Yield each cheat that gained, or that could not be judged."""
    for name, evaluation in judged:
        speed = speed_of(evaluation)
        if not evaluation.verdict.counted:
            yield f"{name} {why_not(evaluation)}"
        elif evaluation.verdict is Verdict.CORRECT and (speed is None or speed.value > WITHOUT_GAIN):
            yield f"{name} is accepted, {'not timed' if speed is None else speed}"


CHECKS: Sequence[Check] = (
    Check("driver", "asks the driver for its version, clock, power, temperature and memory", ask_driver),
    Check("start", "starts the judge: torch and triton load, and processes fork", start),
    Check("contexts", "gives new processes a GPU context and has them compute", make_contexts),
    Check("clocks", "compares events, graphs and rocprofv3, and one kernel in 20 processes", compare_clocks),
    Check("honest", "judges the starter baselines at GPU sizes: all are correct", judge_baselines),
    Check("itself", "compares each baseline with itself: the ratio is 1", compare_with_itself),
    Check("tapes", "plays the launches of each baseline in a process without its source", play_tapes),
    Check("counters", "samples clock, power and temperature while kernels are timed", read_counters),
    Check(
        "sandbox", "looks at the sandbox around a process that has a GPU: no layer failed", look_at_sandbox
    ),
    Check("repeats", f"times one kernel {REPEATS} times on each GPU: the times agree", repeat),
    Check(
        "cheats", "judges kernels that cheat where the interpreter does not look: none gains", refuse_cheats
    ),
)
