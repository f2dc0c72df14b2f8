"""What the clock's times say: latencies with their outcomes, how they are confirmed, and what is known beside them."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from harness.hardware.product import Product
from harness.node.telemetry import Watched, find_disturbances
from harness.wire import ratios
from harness.wire.clock_messages import (
    BASELINE,
    CANDIDATE,
    RIVAL,
    TAPE,
    Floor,
    Measure,
    Measured,
    ProcessTimes,
)
from harness.wire.device import Device
from harness.wire.evaluation import Basis, ErrorReport, Fact, Verdict
from harness.wire.latency import DeviceState, Latency, Outcome, RoughTime, Timed, Window
from suites.task import Case

from .efficiency import case_efficiency

CONFIRMED = 0.1
"""The clock's own watch confirms the device's events where the two are this close, relative,"""
CONFIRMED_MS = 0.003
"""or this close."""
CONTRADICTED = 0.25
"""They are contradicted where the same launches take longer by this much, relative, in a process that never saw the source,"""
CONTRADICTED_MS = 0.01
"""and by this much,"""
CONTRADICTED_BY_WATCH_MS = 0.05
"""or, where no tape was played, by this much on the clock's own watch, which sees the host as well."""


class Timing(msgspec.Struct, frozen=True):
    """What the stage found."""

    latency: tuple[Latency, ...]
    detail: str
    verdict: Verdict = Verdict.CORRECT
    error: ErrorReport | None = None
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    before: DeviceState | None = None
    """Of the device, once it was leased."""
    after: DeviceState | None = None
    rough: tuple[RoughTime, ...] = ()
    """Estimates, where a rough effort was asked for."""

    @property
    def ok(self) -> bool | None:
        """Of the stage."""
        if self.verdict is not Verdict.CORRECT:
            return False
        return True if self.latency or self.rough else None


def undisturbed(
    times: Sequence[ProcessTimes], watched: Watched
) -> tuple[tuple[ProcessTimes, ...], Counter[tuple[str, str]]]:
    """Times without the blocks during which the clock had dropped or others used the device; how many samples those were, by
    case and side. A process all of whose blocks were disturbed is left out whole.
    """
    kept, left_out = [], Counter[tuple[str, str]]()
    for one in times:
        spans = [(block.began_s, block.ended_s) for block in one.blocks]
        why = find_disturbances(watched.points, spans)
        blocks = tuple(block for block, disturbed in zip(one.blocks, why, strict=True) if not disturbed)
        lost = sum(len(block.samples_ms) for block in one.blocks) - sum(
            len(block.samples_ms) for block in blocks
        )
        left_out[one.case, one.side] += lost
        if blocks:
            kept.append(msgspec.structs.replace(one, blocks=blocks))
    return tuple(kept), left_out


def concluded(
    device: Device,
    product: Product | None,
    measure: Measure,
    measured: Measured,
    window: Window,
    left_out: Counter[tuple[str, str]],
) -> Timing:
    """Latencies of every case that both sides finished, and what is to be said of them."""
    cases = measure.task.open_cases
    found = [_latency(device, product, measure, measured, case) for case in cases]
    against_it = {one.case: words for one in found if one and (words := contradicted(one, measured))}
    latency = tuple(_watched(one, window, left_out) for one in found if one and one.case not in against_it)
    if measured.verdict:
        assert measured.error is not None
        return Timing((), measured.error.message, Verdict(measured.verdict), measured.error)
    missing = {case.name for case in cases} - {one.case for one in latency}
    why = "; ".join(
        filter(None, (why_missing(measured, missing - set(against_it), left_out), *against_it.values()))
    )
    if not latency:
        return Timing((), f"not timed: {why or 'no case was measured'}")
    outcomes = [one.outcome for one in latency]
    words = ", ".join(f"{outcomes.count(one)} {one}" for one in Outcome if one in outcomes)
    notes = []
    if missing:
        count = f"{len(latency)} of {len(cases)} cases"
        notes.append(f"timing was not whole: {count}{f': {why}' if why else ''}")
    elif measured.problem:
        notes.append(f"timing was not finished, though every case has a latency: {measured.problem}")
    notes += [
        f"{one.case}: {one.efficiency.suspect}"
        for one in latency
        if one.efficiency and one.efficiency.suspect
    ]
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


def _watched(each: Latency, window: Window, left_out: Counter[tuple[str, str]]) -> Latency:
    """With what the device told, and what was left out for it."""
    assert each.baseline is not None
    assert each.candidate is not None
    return msgspec.structs.replace(
        each,
        window=window if window.source else None,
        baseline=msgspec.structs.replace(each.baseline, left_out=left_out[each.case, BASELINE]),
        candidate=msgspec.structs.replace(each.candidate, left_out=left_out[each.case, CANDIDATE]),
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
    both = {one.pair for one in by_side[BASELINE]} & {one.pair for one in by_side[CANDIDATE]}
    slow, fast = ([one for one in by_side[side] if one.pair in both] for side in (BASELINE, CANDIDATE))
    if len(fast) < 2:
        return None
    baseline, candidate = _timed(slow), _timed(fast)
    floor_ms = measured.floor.empty_ms if measured.floor is not None else None
    short = floor_ms is not None and min(baseline.median_ms, candidate.median_ms) < ratios.FLOORS * floor_ms
    found = None if short else ratios.ratio(_samples(slow), _samples(fast))
    rivals = [one for one in by_side.get(RIVAL, []) if one.pair in both]
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
        confirmed=confirmed(candidate.median_ms, wall_ms, _tape_ms(measured, case.name)),
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
    return "wall" if wall_ms is not None and abs(wall_ms - event_ms) <= near else "bound"


def contradicted(latency: Latency, measured: Measured) -> str:
    """What is known from outside the guest against a case's time; empty where nothing. Such a time is none, and neither is a speedup by it."""
    tape_ms, event_ms = _tape_ms(measured, latency.case), latency.candidate_ms
    near = CONTRADICTED * event_ms
    said = f"where its own events say {event_ms:.4f} ms"
    if tape_ms is None:
        wall_ms = latency.wall_ms
        if wall_ms is None or wall_ms - event_ms <= max(near, CONTRADICTED_BY_WATCH_MS):
            return ""
        return (
            f"{latency.case}: a call of the candidate takes {wall_ms:.4f} ms on the clock's own watch, {said}"
        )
    if tape_ms - event_ms <= max(near, CONTRADICTED_MS):
        return ""
    return f"{latency.case}: the candidate's launches take {tape_ms:.4f} ms, one after the other in a process that never saw it, {said}"


def _tape_ms(measured: Measured, case: str) -> float | None:
    played = [one for one in measured.times if one.side == TAPE and one.case == case]
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


def why_missing(measured: Measured, missing: Collection[str], left_out: Mapping[tuple[str, str], int]) -> str:
    """Why these cases have no time: what ended the clock's work, else how many of their samples were disturbed; empty where neither
    is known.
    """
    lost = sum(count for (case, _), count in left_out.items() if case in missing)
    disturbed = f"{lost} samples were disturbed by a drop of the clock or by others on the device"
    return measured.problem or (disturbed if lost else "")


def not_timed(cases: Sequence[Case], latency: Sequence[Latency]) -> tuple[str, ...]:
    """Cases without a latency, by name, where others have one."""
    timed = {one.case for one in latency}
    return tuple(case.name for case in cases if case.name not in timed) if timed else ()


def mean_speedups(latency: Sequence[Latency], missing: Sequence[str]) -> tuple[float | None, float | None]:
    """GEAK's mean over cases of the ratio of medians, and the geometric mean, over the cases that have a ratio.

    `None` where none has, and where a latency is `missing`: the speedup over some cases is not the task's.
    """
    known = [one.speedup for one in latency if one.speedup is not None]
    if missing or not known:
        return None, None
    return statistics.fmean(known), statistics.geometric_mean(known)
