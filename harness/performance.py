"""The performance stage on a GPU: timers for the clock, the lease, and what the times say."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack

import msgspec

from harness.worker.serving.messages import ENCODER, Alive
from harness.worker.timing.messages import (
    BASELINE,
    CANDIDATE,
    CLOCK_REPORTS,
    RIVAL,
    TAPE,
    ClockRequest,
    Floor,
    Leased,
    LeaseWanted,
    Measure,
    Measured,
    NeedTimers,
    ProcessTimes,
    Timer,
)
from suites.task import Case, Task

from . import limits, ratios
from .baselines import Against, timing_baseline
from .device import Device, Target
from .efficiency import case_efficiency, flush_bytes
from .errors import HarnessError, WorkerDied
from .evaluation import Basis, ErrorReport, Fact, Verdict
from .frames import AsyncChannel
from .latency import Latency, Outcome, Timed
from .pool import DevicePool, Slot
from .product import Product
from .products import product_of
from .servers import Child

BUDGET_S = 30.0
"""For the samples of all cases together, while the device is held alone."""
TIMER_CPU_S = 600
CONFIRMED = 0.1
"""The clock's own watch confirms the device's events where the two are this close, relative,"""
CONFIRMED_MS = 0.003
"""or this close."""


class Timing(msgspec.Struct, frozen=True):
    """What the stage found."""

    latency: tuple[Latency, ...]
    detail: str
    verdict: Verdict = Verdict.CORRECT
    error: ErrorReport | None = None
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool | None:
        """Of the stage."""
        if self.verdict is not Verdict.CORRECT:
            return False
        return True if self.latency else None


class Performance:
    """Times one source against the timing baseline, and against a rival where there is one."""

    def __init__(self, pool: DevicePool, slot: Slot, task: Task, target: Target, *, seed: int) -> None:
        self._pool = pool
        self._slot = slot
        self._task = task
        self._target = target
        self._seed = seed
        self._children: list[Child] = []

    async def measure(
        self,
        channel: AsyncChannel,
        source: str,
        *,
        rival: str | None,
        against: Against,
        compiled: Collection[str] = (),
    ) -> Timing:
        """What timing says; `WorkerDied` when the judge was lost. Leaves no timer behind.

        `compiled` are digests of the code that the compile stage made of the source.
        """
        try:
            baseline = against.baseline
            if baseline is None:
                baseline = await asyncio.to_thread(timing_baseline, self._task)
        except HarnessError as error:
            return Timing((), f"not timed: {error}")
        recognised = product_of(self._slot.device)
        sources = {BASELINE: baseline.source, CANDIDATE: source}
        if rival is not None and rival != source:
            sources[RIVAL] = rival
        measure = Measure(
            task=self._task,
            sources=sources,
            seed=self._seed,
            target=self._target.name,
            limits=self._pool.limits(self._slot.device),
            cold=against.cold,
            against=baseline.name,
            flush_bytes=flush_bytes(recognised.product),
            budget_s=BUDGET_S,
        )
        try:
            async with AsyncExitStack() as held:
                measured = await self._follow(channel, measure, held)
        finally:
            self._end()
        timing = concluded(self._slot.device, recognised.product, measure, measured)
        return msgspec.structs.replace(timing, facts=(*timing.facts, *tape_facts(measured, compiled)))

    async def _follow(self, channel: AsyncChannel, measure: Measure, held: AsyncExitStack) -> Measured:
        """Serves the clock until it is done."""
        pairs = 0
        await self._tell(channel, measure)
        while True:
            async with asyncio.timeout(measure.limits.call_s + limits.ORACLE_S):
                report = CLOCK_REPORTS.decode(await channel.receive(64 << 20))
            match report:
                case NeedTimers(sides=sides, count=count, instead=instead):
                    if instead:
                        self._end()
                    await self._start(channel, sides, range(pairs, pairs + count))
                    pairs += count
                case LeaseWanted():
                    await held.enter_async_context(self._pool.timing(self._slot))
                    await self._tell(channel, Leased())
                case Alive():
                    continue
                case Measured():
                    return report

    def _end(self) -> None:
        for child in self._children:
            child.end()
        self._children.clear()

    async def _start(self, channel: AsyncChannel, sides: Sequence[str], pairs: range) -> None:
        wanted = [(side, pair) for pair in pairs for side in sides]
        for side, pair in wanted:
            child, pid, end = await self._slot.server.spawn_for_another(
                "timer", cpu_limit_s=TIMER_CPU_S, sandboxed=True, device=self._slot.device
            )
            self._children.append(child)
            try:
                await self._tell(channel, Timer(side=side, pair=pair, pid=pid), (end.fileno(),))
            finally:
                end.close()

    async def _tell(
        self, channel: AsyncChannel, request: ClockRequest, descriptors: tuple[int, ...] = ()
    ) -> None:
        try:
            await channel.send(ENCODER.encode(request), descriptors)
        except EOFError as error:
            raise WorkerDied("the judge was lost while it timed") from error


def concluded(device: Device, product: Product | None, measure: Measure, measured: Measured) -> Timing:
    """Latencies of every case that both sides finished, and what is to be said of them."""
    cases = measure.task.open_cases
    found = [_latency(device, product, measure, measured, case) for case in cases]
    latency = tuple(one for one in found if one is not None)
    if measured.verdict:
        assert measured.error is not None
        return Timing((), measured.error.message, Verdict(measured.verdict), measured.error)
    if not latency:
        return Timing((), f"not timed: {measured.problem or 'no case was measured'}")
    outcomes = [one.outcome for one in latency]
    words = ", ".join(f"{outcomes.count(one)} {one}" for one in Outcome if one in outcomes)
    notes = []
    if measured.problem:
        notes.append(f"timing ended early: {measured.problem}")
    if measured.not_shared:
        notes.append(f"timers' inputs went through host memory: {measured.not_shared}")
    facts = (
        Fact("outputs of timed calls compared with the oracle", str(measured.confirmed_outputs), Basis.PROOF),
        *_floor_facts(measured.floor),
        Fact(
            "time of timing",
            ", ".join(f"{name} {spent:.2f} s" for name, spent in measured.seconds.items()),
            Basis.PROOF,
        ),
    )
    against = f"against {measure.against}, {'cold' if measure.cold else 'hot'} caches"
    return Timing(
        latency,
        f"{len(latency)} of {len(cases)} cases timed {against}: {words}",
        facts=facts,
        notes=tuple(notes),
    )


def tape_facts(measured: Measured, compiled: Collection[str]) -> tuple[Fact, ...]:
    """What the launch tapes prove: that the kernels alone, compiled from the source, do the work on inputs of the judge's."""
    facts = []
    for tape in measured.tapes:
        if not tape.played:
            facts.append(Fact(f"{tape.case}: launch tape", f"none: {tape.why_not}", Basis.EVIDENCE))
            continue
        known = set(tape.code) <= set(compiled)
        whose = (
            "as compiled from the source" if known else "not among those that were compiled from the source"
        )
        words = f"{tape.launches} launches right on inputs of the judge's, binaries {whose}"
        facts.append(Fact(f"{tape.case}: launch tape", words, Basis.PROOF if known else Basis.EVIDENCE))
    return tuple(facts)


def _floor_facts(floor: Floor | None) -> tuple[Fact, ...]:
    if floor is None:
        return ()
    copies = ", ".join(
        f"{size >> 20} MiB at {cold / 1e12:.2f} TB/s cold and {hot / 1e12:.2f} hot"
        for size, cold, hot in floor.copies
    )
    return (
        Fact("floor of the clock", f"{floor.empty_ms * 1e3:.2f} us for an empty kernel", Basis.PROOF),
        Fact("state of the caches", f"copies of {copies}", Basis.PROOF),
    )


def _latency(
    device: Device, product: Product | None, measure: Measure, measured: Measured, case: Case
) -> Latency | None:
    by_side = {
        side: sorted(
            (one for one in measured.times if one.case == case.name and one.side == side),
            key=lambda one: one.pair,
        )
        for side in measure.sources
    }
    slow, fast = by_side[BASELINE], by_side[CANDIDATE]
    if len(slow) != len(fast) or len(fast) < 2:
        return None
    baseline, candidate = _timed(slow), _timed(fast)
    floor_ms = measured.floor.empty_ms if measured.floor is not None else None
    short = floor_ms is not None and min(baseline.median_ms, candidate.median_ms) < ratios.FLOORS * floor_ms
    found = None if short else ratios.ratio(_samples(slow), _samples(fast))
    rivals = by_side.get(RIVAL, [])
    rival = ratios.ratio(_samples(rivals), _samples(fast)) if len(rivals) == len(fast) and not short else None
    wall = [one.wall_ms for one in fast if one.wall_ms is not None]
    wall_ms = statistics.median(wall) if wall else None
    return Latency(
        device=device.name,
        case=case.name,
        baseline_ms=baseline.median_ms,
        candidate_ms=candidate.median_ms,
        speedup=None if found is None else found.value,
        ci=None if found is None else (found.low, found.high),
        confirmed=confirmed(candidate.median_ms, wall_ms, _tape_ms(measured, case)),
        outcome=Outcome.TOO_SHORT if found is None else found.outcome,
        against=measure.against,
        cache="cold" if measure.cold else "hot",
        pairs=len(fast),
        floor_ms=floor_ms,
        baseline=baseline,
        candidate=candidate,
        wall_ms=wall_ms,
        rival_ms=_timed(rivals).median_ms if rivals else None,
        rival_speedup=None if rival is None else rival.value,
        rival_ci=None if rival is None else (rival.low, rival.high),
        efficiency=None
        if product is None
        else case_efficiency(measure.task, case, product, candidate.median_ms),
        configs=fast[0].configs,
    )


def confirmed(event_ms: float, wall_ms: float | None, tape_ms: float | None) -> str:
    """
    How a candidate's own word on its time is confirmed.

    `graph`: its launches take no longer in a process that never saw its source, on a clock out of its reach. `wall`: the
    clock's own watch around whole batches agrees; it sees the host as well. Else that is a `bound`, and no more is said.
    """
    near = max(CONFIRMED * event_ms, CONFIRMED_MS)
    if tape_ms is not None and tape_ms - event_ms <= near:
        return "graph"
    return "wall" if wall_ms is not None and wall_ms - event_ms <= near else "bound"


def _tape_ms(measured: Measured, case: Case) -> float | None:
    played = [one for one in measured.times if one.side == TAPE and one.case == case.name]
    return statistics.median(_samples(played)[0]) if played else None


def _samples(processes: Sequence[ProcessTimes]) -> list[list[float]]:
    return [[sample for block in one.blocks for sample in block.samples_ms] for one in processes]


def _timed(processes: Sequence[ProcessTimes]) -> Timed:
    by_process = _samples(processes)
    every = sorted(sample for samples in by_process for sample in samples)
    plain = [one.plain_ms for one in processes if one.plain_ms is not None]
    graph = [one.graph_ms for one in processes if one.graph_ms is not None]
    return Timed(
        median_ms=statistics.median(statistics.median(samples) for samples in by_process),
        p10_ms=every[len(every) // 10],
        p90_ms=every[len(every) * 9 // 10],
        samples=len(every),
        processes=len(processes),
        plain_ms=statistics.median(plain) if plain else None,
        graph_ms=statistics.median(graph) if graph else None,
        peak_bytes=max(one.peak_bytes for one in processes),
    )


def mean_speedups(latency: Sequence[Latency]) -> tuple[float | None, float | None]:
    """GEAK's mean over cases of the ratio of medians, and the geometric mean, over the cases that have a ratio."""
    known = [one.speedup for one in latency if one.speedup is not None]
    if not known:
        return None, None
    return statistics.fmean(known), statistics.geometric_mean(known)
