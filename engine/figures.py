"""Speed figures of an evaluation, by case: bytes, distance to the roofline, device fill by grids, compiled kernels.

Bytes and bounds are of the `gpu` sizes if programs were sampled there, else of the interpreter's `cpu` sizes. A bound
is always labelled as a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness import Evaluation, KernelResources
from harness.wire.evaluation import Estimate, GridFit, SampledTraffic
from harness.wire.latency import LaunchTime


@dataclass(frozen=True, slots=True)
class TrafficFacts:
    """Bytes of one case: sampled at `gpu` sizes, or counted by the interpreter at `cpu` sizes. All are bounds."""

    case: str
    requested_bytes: int
    unique_bytes: int
    """Upper bound."""
    minimal_bytes: int
    distinct: str
    """The bounds on distinct bytes, in words."""
    die_bytes: int | None = None
    """Distinct bytes of each die, summed over the dies, at most; `None` if nothing was sampled."""
    sampled: str = ""
    """`11 of 1024 programs`; empty if every program was counted."""

    @property
    def ratio(self) -> float | None:
        """Requested bytes over minimal bytes."""
        return self.requested_bytes / self.minimal_bytes if self.minimal_bytes else None


@dataclass(frozen=True, slots=True)
class RooflineFacts:
    """Distance of one case from its roofline."""

    estimate: Estimate
    small: bool
    """True if the estimate is of the interpreter's sizes."""
    measured_us: float | None
    """Latency on the device; `None` if nothing was timed or the estimate is of another product."""

    @property
    def spread(self) -> float | None:
        """Upper bound over lower bound."""
        return self.estimate.high_us / self.estimate.low_us if self.estimate.low_us > 0 else None

    @property
    def distance(self) -> float | None:
        """Measured latency over the lower bound; 1 is the roofline."""
        if self.measured_us is None or self.estimate.low_us <= 0:
            return None
        return self.measured_us / self.estimate.low_us


@dataclass(frozen=True, slots=True)
class FitFacts:
    """How one grid fills a target's reference device."""

    target: str
    kernel: str
    fit: GridFit


@dataclass(frozen=True, slots=True)
class ResourceFacts:
    """One compiled kernel, and the cases that share its figures."""

    target: str
    kernel: KernelResources
    cases: tuple[str, ...]


def traffic_facts(evaluation: Evaluation) -> tuple[TrafficFacts, ...]:
    """Returns the bytes by case: sampled at `gpu` sizes, else counted by the interpreter."""
    if evaluation.sampled:
        return tuple(map(sampled_facts, evaluation.sampled))
    facts = []
    for traffic in evaluation.traffic:
        unique = traffic.unique_read_bytes + traffic.unique_write_bytes
        facts.append(
            TrafficFacts(
                case=traffic.case,
                requested_bytes=traffic.requested_read_bytes + traffic.requested_write_bytes,
                unique_bytes=unique,
                minimal_bytes=traffic.minimal_bytes,
                distinct=byte_words(unique),
            )
        )
    return tuple(facts)


def sampled_facts(traffic: SampledTraffic) -> TrafficFacts:
    """Returns the sampled bytes of one case at its `gpu` sizes."""
    low, high = traffic.unique_low_bytes, traffic.unique_high_bytes
    complete = traffic.sampled >= traffic.programs
    return TrafficFacts(
        case=traffic.case,
        requested_bytes=traffic.requested_read_bytes + traffic.requested_write_bytes,
        unique_bytes=high,
        minimal_bytes=traffic.minimal_bytes,
        distinct=byte_words(high) if low == high else f"{byte_words(low)} to {byte_words(high)}",
        die_bytes=traffic.die_bytes,
        sampled="" if complete else f"{traffic.sampled} of {traffic.programs} programs",
    )


def byte_words(amount: int) -> str:
    """Returns an amount as text, for example `536.9 MB`: decimal units, four digits; small amounts in bytes."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= 10 * size:
            return f"{amount / size:.4g} {unit}"
    return f"{amount} B"


def roofline(evaluation: Evaluation) -> tuple[RooflineFacts, ...]:
    """Returns the bounds by target and case, with the measured latency if the bound is of the device's own product."""
    measured = {
        latency.case: latency.candidate_ms * 1000
        for latency in evaluation.latency
        if latency.device == evaluation.device
    }
    return tuple(
        RooflineFacts(
            estimate=estimate,
            small=estimate.case in evaluation.not_sampled,
            measured_us=measured.get(estimate.case) if estimate.of_device else None,
        )
        for estimate in evaluation.estimate
    )


def grid_fits(evaluation: Evaluation) -> tuple[FitFacts, ...]:
    """Returns the fit of each distinct grid; the grids with the costliest idle places come first."""
    costs = case_us(evaluation)
    fits: dict[tuple[object, ...], FitFacts] = {}
    for target, kernels in evaluation.resources.items():
        for kernel in kernels:
            for fit in kernel.fits:
                fits.setdefault((target, kernel.kernel, fit), FitFacts(target, kernel.kernel, fit))
    return tuple(
        sorted(
            fits.values(), key=lambda facts: -facts.fit.idle * costs.get((facts.target, facts.fit.case), 0.0)
        )
    )


def case_us(evaluation: Evaluation) -> dict[tuple[str, str], float]:
    """Returns the lower roofline bound in microseconds, by target and case."""
    return {(estimate.target, estimate.case): estimate.low_us for estimate in evaluation.estimate}


def achieved(evaluation: Evaluation) -> str:
    """Returns the speed of a correct kernel in one line: measured figures if it was timed, else estimates."""
    if evaluation.speedup is not None:
        devices = ", ".join(sorted({latency.device for latency in evaluation.latency})) or evaluation.device
        sign = evaluation.speedup_bound.sign
        covered = f" over {evaluation.in_part}" if evaluation.in_part else ""
        geomean_words = (
            f", {sign}{evaluation.speedup_geomean:.3f}x by geometric mean"
            if evaluation.speedup_geomean
            else ""
        )
        words = (
            f"{sign}{evaluation.speedup:.3f}x the timing baseline{covered} (mean over cases{geomean_words}), "
            f"measured on {devices}{measured_words(evaluation)}"
        )
        distances = [facts.distance for facts in roofline(evaluation) if facts.distance and not facts.small]
        return (
            f"{words}; {geomean(distances):.2f} times the roofline's estimated bound" if distances else words
        )
    parts = ["no case has a ratio to the baseline"] if evaluation.latency else []
    ratios = [
        estimate.high_us / estimate.low_us
        for estimate in evaluation.estimate
        if min(estimate.low_us, estimate.high_us) > 0
    ]
    if ratios:
        parts.append(
            f"estimate, not a measurement: upper over lower roofline bound {geomean(ratios):.2f}, mean over cases"
        )
    traffic = traffic_facts(evaluation)
    requested = sum(facts.requested_bytes for facts in traffic)
    minimal = sum(facts.minimal_bytes for facts in traffic)
    if minimal:
        parts.append(f"requests {requested / minimal:.2f} times the minimal bytes")
    kernels = [kernel for rows in evaluation.resources.values() for kernel in rows]
    vector = sum(kernel.vgpr_spills or 0 for kernel in kernels)
    scalar = sum(kernel.sgpr_spills or 0 for kernel in kernels)
    if kernels:
        parts.append(
            f"{vector} vector and {scalar} scalar registers spilled" if vector or scalar else "no spills"
        )
    occupancy = [kernel.occupancy for kernel in kernels if kernel.occupancy is not None]
    if occupancy:
        parts.append(f"lowest occupancy {min(occupancy):g}")
    return "; ".join(parts) or "correct; nothing is known of its speed"


def measured_words(evaluation: Evaluation) -> str:
    """Returns clock, power, share of the practical roofs and time by launch, to follow `measured on 0`; empty if unknown."""
    window = evaluation.latency[0].window if evaluation.latency else None
    state = ""
    if window is not None and window.clock_mhz is not None:
        power = "" if window.power_w is None else f" and {window.power_w:.0f} W"
        state = f" at {window.clock_mhz} MHz{power}"
    used = [(row.case, row.efficiency) for row in evaluation.latency if row.efficiency is not None]
    copied = [f"{case} {roof.io_measured:.0%}" for case, roof in used if roof.io_measured is not None]
    multiplied = [f"{case} {roof.mfu_measured:.0%}" for case, roof in used if roof.mfu_measured is not None]
    parts = [
        f"of a measured copy's bandwidth: {', '.join(copied)}" if copied else "",
        f"of a measured matrix product's FLOP/s: {', '.join(multiplied)}" if multiplied else "",
        *(f"{row.case} by launch: {_by_launch(row.launches)}" for row in evaluation.latency if row.launches),
        *(
            f"{row.case} of the baseline by launch: {_by_launch(row.baseline_launches)}"
            for row in evaluation.latency
            if row.baseline_launches
        ),
    ]
    return "; ".join([state, *filter(None, parts)])


def _by_launch(launches: Sequence[LaunchTime]) -> str:
    return ", ".join(f"{launch.kernel} {launch.ms * 1e3:.3g} us" for launch in launches)


def geomean(ratios: Sequence[float]) -> float:
    """Returns the geometric mean."""
    return math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))


def group_resources(evaluation: Evaluation) -> tuple[ResourceFacts, ...]:
    """Returns the compiled kernels, grouped if they differ only in the case; spilling kernels first."""
    rows: dict[tuple[object, ...], list[tuple[str, KernelResources]]] = {}
    for target, kernels in evaluation.resources.items():
        for kernel in kernels:
            key = (target, kernel.kernel, kernel.binary_sha256, tuple(sorted(kernel.config.items())))
            rows.setdefault(key, []).append((target, kernel))
    facts = [
        ResourceFacts(target=same[0][0], kernel=same[0][1], cases=tuple(kernel.case for _, kernel in same))
        for same in rows.values()
    ]
    return tuple(sorted(facts, key=lambda row: -(row.kernel.vgpr_spills or 0)))
