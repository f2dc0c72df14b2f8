"""
Energy a call, from the device's own counter over a stretch of nothing but calls.

Between timed samples the device reads to empty its caches and spins, so a window over those would count mostly that. What
is told here is of plain calls back to back: caches as the calls leave them, launches included, the whole device, its idle
draw too. A counter grows in steps (on NVIDIA's data centre GPUs about every 100 ms: Yang et al., Part-time Power
Measurements, SC 2024) and lags behind the load, so the stretch is long, its beginning is left out, and power is taken from
step to step: a stretch with too few steps tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from harness.node.telemetry import Point
from harness.wire.clock_messages import BASELINE, CANDIDATE, Drawn, ProcessTimes
from harness.wire.latency import Latency, Timed

DRAWN_S = 1.2
"""That the calls of one side and case go on."""
SETTLE_S = 0.2
"""At the beginning, while clock and counter follow the load."""
LEAST_STEPS = 5
"""Of the counter: a step is seen up to one reading late, 15 ms of at least half a second."""
LEAST_S = 0.5
"""Between the first step that counts and the last."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The counter right after a step."""

    at_s: float
    energy_j: float


def energy_a_call(points: Sequence[Point], drawn: Drawn) -> float | None:
    """Millijoules; `None` where the counter is not told, moved too rarely, or began anew."""
    inside = [
        Counted(point.at_s, point.energy_j)
        for point in points
        if point.energy_j is not None and drawn.began_s + SETTLE_S <= point.at_s <= drawn.ended_s
    ]
    steps = [now for before, now in pairwise(inside) if now.energy_j != before.energy_j]
    if len(steps) <= LEAST_STEPS or steps[-1].at_s - steps[0].at_s < LEAST_S:
        return None
    if any(now.energy_j < before.energy_j for before, now in pairwise(steps)):
        return None
    watts = (steps[-1].energy_j - steps[0].energy_j) / (steps[-1].at_s - steps[0].at_s)
    found = watts * (drawn.ended_s - drawn.began_s) / drawn.calls * 1e3
    return found if math.isfinite(found) else None


def with_energy(
    latency: Sequence[Latency], times: Iterable[ProcessTimes], points: Sequence[Point]
) -> tuple[tuple[Latency, ...], str]:
    """The latencies with both sides' energy a call, where it was asked for, and for people why some have none."""
    drawn = {(one.case, one.side): one.drawn for one in times if one.drawn is not None}
    found = {key: energy_a_call(points, one) for key, one in drawn.items()}
    untold = sorted({case for (case, _), energy in found.items() if energy is None})
    left_out = sorted({each.case for each in latency} - {case for case, _ in drawn})
    told = tuple(
        msgspec.structs.replace(
            each,
            baseline=_with(each.baseline, found, (each.case, BASELINE)),
            candidate=_with(each.candidate, found, (each.case, CANDIDATE)),
        )
        for each in latency
    )
    rarely = (
        f"energy a call is not told of {', '.join(untold)}: the device's counter moved too rarely for it"
        if untold
        else ""
    )
    short = (
        f"energy a call was not measured of {', '.join(left_out)}: too short, or the time for timing was up"
        if left_out
        else ""
    )
    return told, "; ".join(filter(None, (rarely, short)))


def _with(
    side: Timed | None, found: Mapping[tuple[str, str], float | None], key: tuple[str, str]
) -> Timed | None:
    return None if side is None else msgspec.structs.replace(side, energy_mj=found.get(key))
