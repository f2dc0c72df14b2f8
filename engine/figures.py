"""What an evaluation knows of a kernel's speed, by case: bytes, distance to the roofline, how grids fill the device, binaries.

Bytes and bounds are of the `gpu` sizes where programs were sampled there, else of the interpreter's; what is a bound says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness import Evaluation, KernelResources
from harness.wire.evaluation import Estimate, GridFit, SampledTraffic


@dataclass(frozen=True, slots=True)
class TrafficFacts:
    """Bytes of one case: sampled at its `gpu` sizes, or counted by the interpreter at its `cpu` sizes. All are bounds."""

    case: str
    requested_bytes: int
    unique_bytes: int
    """At most."""
    minimal_bytes: int
    distinct: str
    """The bounds on distinct bytes, in words."""
    die_bytes: int | None = None
    """Distinct bytes of each die, all dies together, at most; `None` where nothing was sampled."""
    sampled: str = ""
    """`11 of 1024 programs`; empty where every one was counted."""

    @property
    def ratio(self) -> float | None:
        """Requested over minimal."""
        return self.requested_bytes / self.minimal_bytes if self.minimal_bytes else None


@dataclass(frozen=True, slots=True)
class RooflineFacts:
    """How far one case is from its roofline."""

    estimate: Estimate
    small: bool
    """Whether it is of the interpreter's sizes."""
    measured_us: float | None
    """Latency on the device, where the estimate is of that device's own product; else, and where nothing was timed, `None`."""

    @property
    def spread(self) -> float | None:
        """Upper over lower bound."""
        return self.estimate.high_us / self.estimate.low_us if self.estimate.low_us > 0 else None

    @property
    def distance(self) -> float | None:
        """Measured latency over the lower bound; 1 is the roofline itself."""
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
    """Bytes by case: those sampled at `gpu` sizes, else those that the interpreter counted."""
    if evaluation.sampled:
        return tuple(map(sampled_facts, evaluation.sampled))
    facts = []
    for each in evaluation.traffic:
        unique = each.unique_read_bytes + each.unique_write_bytes
        facts.append(
            TrafficFacts(
                case=each.case,
                requested_bytes=each.requested_read_bytes + each.requested_write_bytes,
                unique_bytes=unique,
                minimal_bytes=each.minimal_bytes,
                distinct=byte_words(unique),
            )
        )
    return tuple(facts)


def sampled_facts(traffic: SampledTraffic) -> TrafficFacts:
    """Of one case at its `gpu` sizes."""
    low, high = traffic.unique_low_bytes, traffic.unique_high_bytes
    whole = traffic.sampled >= traffic.programs
    return TrafficFacts(
        case=traffic.case,
        requested_bytes=traffic.requested_read_bytes + traffic.requested_write_bytes,
        unique_bytes=high,
        minimal_bytes=traffic.minimal_bytes,
        distinct=byte_words(high) if low == high else f"{byte_words(low)} to {byte_words(high)}",
        die_bytes=traffic.die_bytes,
        sampled="" if whole else f"{traffic.sampled} of {traffic.programs} programs",
    )


def byte_words(amount: int) -> str:
    """`536.9 MB`: decimal units, four digits; small amounts to the byte."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= 10 * size:
            return f"{amount / size:.4g} {unit}"
    return f"{amount} B"


def roofline(evaluation: Evaluation) -> tuple[RooflineFacts, ...]:
    """Bounds by target and case; beside those of the device's own product what was measured on this device."""
    measured = {
        each.case: each.candidate_ms * 1000 for each in evaluation.latency if each.device == evaluation.device
    }
    return tuple(
        RooflineFacts(
            estimate=each,
            small=each.case in evaluation.not_sampled,
            measured_us=measured.get(each.case) if each.of_device else None,
        )
        for each in evaluation.estimate
    )


def grid_fits(evaluation: Evaluation) -> tuple[FitFacts, ...]:
    """Of every launch that can run, the same grid once; first those whose emptiness costs most, as far as is known."""
    costs = case_us(evaluation)
    found: dict[tuple[object, ...], FitFacts] = {}
    for target, kernels in evaluation.resources.items():
        for kernel in kernels:
            for fit in kernel.fits:
                found.setdefault((target, kernel.kernel, fit), FitFacts(target, kernel.kernel, fit))
    return tuple(
        sorted(found.values(), key=lambda each: -each.fit.idle * costs.get((each.target, each.fit.case), 0.0))
    )


def case_us(evaluation: Evaluation) -> dict[tuple[str, str], float]:
    """The least that each case takes on each target, in microseconds, by the roofline."""
    return {(each.target, each.case): each.low_us for each in evaluation.estimate}


def achieved(evaluation: Evaluation) -> str:
    """What a correct kernel achieved, on one line: measured where it was, and else what is known."""
    if evaluation.speedup is not None:
        devices = ", ".join(sorted({each.device for each in evaluation.latency})) or evaluation.device
        words = f"{evaluation.speedup:.3f}x the timing baseline, measured on {devices}"
        far = [distance for each in roofline(evaluation) if (distance := each.distance) and not each.small]
        return f"{words}; {fmean_log(far):.2f} times the roofline's estimated bound" if far else words
    parts = [f"timing {evaluation.in_part}, so there is no overall speedup"] if evaluation.in_part else []
    ratios = [
        each.high_us / each.low_us for each in evaluation.estimate if min(each.low_us, each.high_us) > 0
    ]
    if ratios:
        parts.append(
            f"estimate, not a measurement: upper over lower roofline bound {fmean_log(ratios):.2f}, mean over cases"
        )
    traffic = traffic_facts(evaluation)
    requested = sum(each.requested_bytes for each in traffic)
    minimal = sum(each.minimal_bytes for each in traffic)
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


def fmean_log(ratios: Sequence[float]) -> float:
    """Geometric mean."""
    return math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))


def grouped(evaluation: Evaluation) -> tuple[ResourceFacts, ...]:
    """Compiled kernels, those that differ in nothing but the case put together; spilling ones first, then by target."""
    rows: dict[tuple[object, ...], list[tuple[str, KernelResources]]] = {}
    for target, kernels in evaluation.resources.items():
        for kernel in kernels:
            key = (target, kernel.kernel, kernel.binary_sha256, tuple(sorted(kernel.config.items())))
            rows.setdefault(key, []).append((target, kernel))
    facts = [
        ResourceFacts(target=same[0][0], kernel=same[0][1], cases=tuple(kernel.case for _, kernel in same))
        for same in rows.values()
    ]
    return tuple(sorted(facts, key=lambda each: -(each.kernel.vgpr_spills or 0)))
