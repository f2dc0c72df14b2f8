"""Latencies with outcomes from the clock's samples, and how each time is confirmed or contradicted."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from harness.hardware.product import Product
from harness.wire.device import Device
from harness.wire.limits import memory_words
from harness.wire.messages.clock import BASELINE, CANDIDATE, Floor, Measure, Measured, ProcessTimes, method_of
from harness.wire.messages.timer import METHOD_WORDS
from harness.wire.results import ratios
from harness.wire.results.evaluation import Basis, ErrorReport, Fact
from harness.wire.results.latency import (
    Bound,
    DeviceReading,
    Latency,
    Outcome,
    RoughTime,
    Timed,
    TimingMethod,
    Window,
)
from harness.wire.results.served_calls import ServedCall, unmet_requirements
from suites.task import Case, Task

from .efficiency import case_efficiency
from .latency_notes import latency_notes

CONFIRMED = 0.1
"""The clock's wall time confirms the device's events if the two differ by at most this share,"""
CONFIRMED_MS = 0.003
"""or by at most this time."""
CONTRADICTED_BY_WATCH, CONTRADICTED_BY_WATCH_MS = 0.25, 0.05
"""The clock's wall time contradicts a reported time at this share and time; wall time includes the host."""

LeftOut = Mapping[tuple[str, str], int]
"""Samples left out because the device was disturbed, by case and side."""


class Timing(msgspec.Struct, frozen=True):
    """The performance stage's result."""

    latency: tuple[Latency, ...]
    detail: str
    error: ErrorReport | None = None
    """The candidate's error in a timed call."""
    doubt: str = ""
    """Why a process that ended in the timing may not be at fault; see `Blame`."""
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    before: DeviceReading | None = None
    """The device's state once it was leased."""
    after: DeviceReading | None = None
    served: tuple[ServedCall, ...] = ()
    rough: tuple[RoughTime, ...] = ()
    """Estimates, for a rough effort."""
    why_not_timed: str = ""
    """Why cases, or all of them, have no time; empty if all have one."""
    cases: tuple[int, int] | None = None
    """The cases that have a time, and all that were to be timed."""
    disturbed: tuple[str, ...] = ()
    """Cases that have no time because of a disturbance of the device. They are timed again."""
    speedup_ci: tuple[float, float] | None = None
    speedup_geomean_ci: tuple[float, float] | None = None
    speedup_weighted_ci: tuple[float, float] | None = None
    """See `Evaluation`."""

    @property
    def ok(self) -> bool | None:
        """`ok` of the stage."""
        if self.error is not None:
            return False
        return True if self.latency or self.rough else None

    def refused(self, error: ErrorReport) -> Timing:
        """Return the timing of a candidate that this error refuses: without times."""
        times = {
            "latency": (),
            "rough": (),
            "speedup_ci": None,
            "speedup_geomean_ci": None,
            "speedup_weighted_ci": None,
        }
        return msgspec.structs.replace(self, detail=error.message, error=error, **times)


def not_timed(why: str, *, disturbed: tuple[str, ...] = ()) -> Timing:
    """Return the timing of a candidate without any time."""
    return Timing((), f"not timed: {why}", why_not_timed=why, disturbed=disturbed)


def conclude_timing(
    device: Device,
    product: Product | None,
    measure: Measure,
    measured: Measured,
    window: Window,
    left_out: LeftOut,
) -> Timing:
    """Latencies of every case that both sides finished, with notes on the other cases."""
    if measured.error is not None:
        return Timing((), measured.error.message, measured.error)
    cases = measure.task.open_cases
    latencies: list[Latency] = []
    contradictions, exact, weights = [], [], []
    for number, case in enumerate(cases):
        latency, case_ratios = _conclude_case(device, product, measure, measured, number, window, left_out)
        contradiction = find_contradiction(latency) if latency is not None else ""
        if contradiction:
            contradictions.append((case.name, contradiction))
        elif latency is not None:
            latencies.append(latency)
            if case_ratios is not None and latency.bound is Bound.NONE:
                exact.append(case_ratios)
                weights.append(case.weight)
    missing = {case.name for case in cases} - {latency.case for latency in latencies}
    unexplained = missing - {case for case, _ in contradictions}
    reasons = (explain_missing(measured, unexplained, left_out), *(words for _, words in contradictions))
    why = "; ".join(filter(None, reasons))
    disturbed = list_disturbed_cases(measured, unexplained, left_out)
    if not latencies:
        return not_timed(why or "no case was measured", disturbed=disturbed)
    notes = []
    if missing:
        count = f"{len(missing)} of {len(cases)} cases have no time"
        notes.append(f"timing was not whole: {count}{f': {why}' if why else ''}")
    elif measured.problem:
        notes.append(f"timing was not finished, though every case has a latency: {measured.problem}")
    notes += [
        f"{latency.case}: {latency.efficiency.suspect}"
        for latency in latencies
        if latency.efficiency and latency.efficiency.suspect
    ]
    by_reason: dict[tuple[TimingMethod, str], list[str]] = {}
    for latency in latencies:
        if reason := measured.why_method.get(latency.case):
            by_reason.setdefault((latency.method, reason), []).append(latency.case)
    added = "some microseconds" if measured.floor is None else f"{measured.floor.empty_ms * 1e3:.3g} us"
    notes += [
        f"{', '.join(names)}: timed {METHOD_WORDS[method]}"
        f"{f', which add {added} to each call' if method is TimingMethod.EVENTS else ''}: {reason}"
        for (method, reason), names in by_reason.items()
    ]
    if measured.not_shared:
        notes.append(f"timers' inputs went through host memory: {measured.not_shared}")
    outcomes = Counter(latency.outcome for latency in latencies)
    words = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in Outcome if outcome in outcomes)
    seconds = ", ".join(f"{name} {spent:.2f} s" for name, spent in measured.seconds.items())
    return Timing(
        tuple(latencies),
        f"{len(latencies)} of {len(cases)} cases timed against {measure.against}, "
        f"{'cold' if measure.cold else 'hot'} caches: {words}",
        speedup_ci=ratios.mean_ratio(exact, arithmetic=True).interval if exact else None,
        speedup_geomean_ci=ratios.mean_ratio(exact).interval if exact else None,
        speedup_weighted_ci=ratios.mean_ratio(exact, weights=weights).interval if any(weights) else None,
        facts=(
            Fact(
                "outputs of timed calls compared with the oracle",
                str(measured.confirmed_outputs),
                Basis.PROOF,
            ),
            *_floor_facts(measured.floor),
            Fact("time of timing", seconds, Basis.PROOF),
        ),
        notes=tuple(notes),
        why_not_timed=why if missing else "",
        cases=(len(latencies), len(cases)),
        disturbed=disturbed,
    )


def require_serving(timing: Timing, task: Task) -> Timing:
    """Return the timing; without latencies and with an error if a call misses what the task requires for serving."""
    kind, message = next(unmet_requirements(timing.served, task), ("", ""))
    if timing.error is not None or not kind:
        return timing
    return timing.refused(ErrorReport(kind=kind, message=message))


def tape_facts(measured: Measured, compiled: Collection[str]) -> tuple[Fact, ...]:
    """Whether each case's kernels alone, compiled from the source, gave right outputs on inputs of the judge's."""
    facts = []
    for tape in measured.tapes:
        if tape.why_not:
            facts.append(Fact(tape_fact_name(tape.case), f"none: {tape.why_not}", Basis.EVIDENCE))
            continue
        from_source = set(tape.code) <= set(compiled)
        not_from_source = "not among those that were compiled from the source"
        origin = "as compiled from the source" if from_source else not_from_source
        words = f"{tape.launches} launches right on inputs of the judge's, binaries {origin}"
        facts.append(Fact(tape_fact_name(tape.case), words, Basis.PROOF if from_source else Basis.EVIDENCE))
    return tuple(facts)


def tape_fact_name(case: str) -> str:
    """Return the name of the fact about the launch tape of a case."""
    return f"{case}: launch tape"


def _floor_facts(floor: Floor | None) -> tuple[Fact, ...]:
    if floor is None:
        return ()
    copies = ", ".join(
        f"{memory_words(size)} at {cold / 1e12:.2f} TB/s cold and {hot / 1e12:.2f} hot"
        for size, cold, hot in floor.copies
    )
    in_graph = "" if floor.graph_ms is None else f", {floor.graph_ms * 1e3:.2f} us in a graph"
    facts = {
        "floor of the clock": f"{floor.empty_ms * 1e3:.2f} us for an empty kernel{in_graph}",
        "state of the caches": f"copies of {copies}",
    }
    if floor.matmul_flops_per_s is not None:
        facts["a large matrix product by torch"] = f"{floor.matmul_flops_per_s / 1e12:.0f} TFLOP/s"
    return tuple(Fact(name, value, Basis.PROOF) for name, value in facts.items())


def pair_processes(measured: Measured, case: str) -> dict[str, list[ProcessTimes]]:
    """Processes of a case by side, in the order of pairs; without pairs that baseline or candidate did not finish."""
    processes = sorted(
        (times for times in measured.times if times.case == case), key=lambda times: times.pair
    )
    by_side = {
        side: [process for process in processes if process.side == side] for side in (BASELINE, CANDIDATE)
    }
    baseline, candidate = ({process.pair for process in by_side[side]} for side in (BASELINE, CANDIDATE))
    pairs = baseline & candidate
    return {
        side: [process for process in side_processes if process.pair in pairs]
        for side, side_processes in by_side.items()
    }


def _conclude_case(
    device: Device,
    product: Product | None,
    measure: Measure,
    measured: Measured,
    number: int,
    window: Window,
    left_out: LeftOut,
) -> tuple[Latency | None, ratios.CaseRatios | None]:
    """The latency of an open case and its ratios; no latency with fewer than two pairs, no ratios without a speedup."""
    case = measure.task.open_cases[number]
    by_side = pair_processes(measured, case.name)
    slow, fast = by_side[BASELINE], by_side[CANDIDATE]
    if len(fast) < 2:
        return None, None
    baseline = _summarise_side(slow, left_out.get((case.name, BASELINE), 0))
    candidate = _summarise_side(fast, left_out.get((case.name, CANDIDATE), 0))
    method = method_of((*slow, *fast))
    floor_ms = measured.floor.empty_by(method) if measured.floor is not None else None
    bound = ratios.find_bound(baseline.median_ms, candidate.median_ms, floor_ms, method)
    case_ratios = speedup = without_floor = None
    if bound is not None:
        samples = samples_by_process(slow), samples_by_process(fast)
        case_ratios = ratios.case_ratios(*samples, [process.pair for process in fast], seed=number)
        speedup = ratios.mean_ratio([case_ratios])
    if (
        speedup is not None
        and bound is Bound.NONE
        and floor_ms is not None
        and method is not TimingMethod.PROFILER
    ):
        without_floor = ratios.without_floor(speedup.value, baseline.median_ms, candidate.median_ms, floor_ms)
    wall = [process.wall_ms for process in fast if process.wall_ms is not None]
    wall_ms = statistics.median(wall) if wall else None
    confirmed = (
        "tape" if all(process.taped for process in fast) else confirm_time(candidate.median_ms, wall_ms)
    )
    is_cold = all(process.cold for process in (*slow, *fast))
    written = measured.written_bytes.get(case.name)
    latency = Latency(
        device=device.name,
        case=case.name,
        baseline_ms=baseline.median_ms,
        candidate_ms=candidate.median_ms,
        speedup=None if speedup is None else speedup.value,
        ci=None if speedup is None else speedup.interval,
        confirmed=confirmed,
        bound=bound or Bound.NONE,
        outcome=Outcome.TOO_SHORT if speedup is None else speedup.outcome,
        against=measure.against,
        cache="cold" if is_cold else "hot",
        method=method,
        pairs=len(fast),
        floor_ms=floor_ms,
        baseline=baseline,
        candidate=candidate,
        wall_ms=wall_ms,
        efficiency=None
        if product is None
        else case_efficiency(
            measure.task, case, product, candidate.median_ms, measured.floor, written if is_cold else None
        ),
        window=window if window.source else None,
        configs=fast[0].configs,
        without_floor=without_floor,
    )
    notes = latency_notes(latency, (*slow, *fast), window, product)
    return msgspec.structs.replace(latency, notes=notes), case_ratios


def confirm_time(reported_ms: float, wall_ms: float | None) -> str:
    """How a time that the candidate's process reported is confirmed from outside it.

    `wall`: the clock's wall time around whole batches agrees. Else `bound`: wall time includes the host, so it is an upper bound.
    """
    near = max(CONFIRMED * reported_ms, CONFIRMED_MS)
    return "wall" if wall_ms is not None and abs(wall_ms - reported_ms) <= near else "bound"


def find_contradiction(latency: Latency) -> str:
    """Why the clock's own watch contradicts, and drops, a time that the candidate's process reported; empty if it does not."""
    reported_ms, wall_ms = latency.candidate_ms, latency.wall_ms
    near = max(CONTRADICTED_BY_WATCH * reported_ms, CONTRADICTED_BY_WATCH_MS)
    if latency.confirmed == "tape" or wall_ms is None or wall_ms - reported_ms <= near:
        return ""
    return (
        f"{latency.case}: a call of the candidate takes {wall_ms:.4f} ms on the clock's own watch, where its own process says "
        f"{reported_ms:.4f} ms"
    )


def samples_by_process(processes: Sequence[ProcessTimes]) -> list[list[float]]:
    """All samples of each process, in milliseconds."""
    return [[sample for block in process.blocks for sample in block.samples_ms] for process in processes]


def median_of_medians(processes: Sequence[ProcessTimes]) -> float:
    """The median over processes of each process's median sample, in milliseconds."""
    return statistics.median(statistics.median(samples) for samples in samples_by_process(processes))


def _summarise_side(processes: Sequence[ProcessTimes], left_out: int) -> Timed:
    samples = sorted(sample for process in samples_by_process(processes) for sample in process)
    plain = [process.plain_ms for process in processes if process.plain_ms is not None]
    sustained = [process.sustained_ms for process in processes if process.sustained_ms is not None]
    clocks = [process.clock_mhz for process in processes if process.clock_mhz is not None]
    return Timed(
        median_ms=median_of_medians(processes),
        p10_ms=samples[len(samples) // 10],
        p90_ms=samples[len(samples) * 9 // 10],
        samples=len(samples),
        left_out=left_out,
        processes=len(processes),
        plain_ms=statistics.median(plain) if plain else None,
        sustained_ms=sustained[0] if sustained else None,
        peak_bytes=max(process.peak_bytes for process in processes),
        clock_mhz=statistics.median_low(clocks) if clocks else None,
        median_error=max(map(ratios.median_error, samples_by_process(processes))),
    )


def explain_missing(measured: Measured, missing: Collection[str], left_out: LeftOut) -> str:
    """Why these cases have no time: what ended the clock's work, else how many samples were disturbed; empty if unknown."""
    lost = sum(count for (case, _), count in left_out.items() if case in missing)
    disturbed = f"{lost} samples were disturbed by a change of the clock or by others on the device"
    return measured.problem or (disturbed if lost else "")


def list_disturbed_cases(measured: Measured, missing: Collection[str], left_out: LeftOut) -> tuple[str, ...]:
    """Cases without a time in which a disturbance of the device cost both sides samples.

    If only one side lost samples, its own kernel moves the clock, and would do so again.
    """
    if measured.problem or measured.error is not None:
        return ()
    return tuple(
        sorted(case for case in missing if all(left_out.get((case, side)) for side in (BASELINE, CANDIDATE)))
    )


def list_untimed_cases(cases: Sequence[Case], latencies: Sequence[Latency]) -> tuple[str, ...]:
    """Names of cases without a latency; empty if no case has one."""
    timed = {latency.case for latency in latencies}
    return tuple(case.name for case in cases if case.name not in timed) if timed else ()


def mean_speedups(latencies: Sequence[Latency]) -> tuple[float | None, float | None]:
    """GEAK's mean over cases of the ratio of medians, and the geometric mean, over the cases that have one; `None` if none."""
    speedups = [latency.speedup for latency in latencies if latency.speedup is not None]
    if not speedups:
        return None, None
    return statistics.fmean(speedups), statistics.geometric_mean(speedups)
