"""Energy per call, from the device's own counter during a stretch of nothing but calls.

Between timed samples the device reads to empty its caches and spins, so a window over samples would count mostly that. The figure
here is for plain calls back to back: caches as the calls leave them, launches included, the whole device with its idle draw. A
counter grows in steps (on NVIDIA's data centre GPUs about every 100 ms: Yang et al., Part-time Power Measurements, SC
2024) and lags behind the load. So the stretch is long, its beginning is left out, power is taken from step to step, and
too few steps give no figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from harness.node.telemetry.samples import Point
from harness.wire.messages.clock import BASELINE, CANDIDATE, Drawn, ProcessTimes
from harness.wire.results.latency import Latency, Timed

DRAWN_S = 2.0
"""Duration of the plain calls of one side and case: in 1.2 s an H100's counter (driver 580) may move only five times."""
SETTLE_S = 0.2
"""Left out at the beginning, while clock and counter follow the load."""
LEAST_STEPS = 5
"""Steps of the counter: a step is seen up to one reading late, 15 ms of at least half a second."""
LEAST_S = 0.5
"""Between the first step that counts and the last."""


def energy_a_call(points: Sequence[Point], drawn: Drawn) -> float | None:
    """Millijoules per call; `None` if the device reports no counter, or the counter moved too rarely or began anew."""
    readings = [
        (point.at_s, point.energy_j)
        for point in points
        if point.energy_j is not None and drawn.began_s + SETTLE_S <= point.at_s <= drawn.ended_s
    ]
    steps = [now for before, now in pairwise(readings) if now[1] != before[1]]
    if len(steps) <= LEAST_STEPS or any(now[1] < before[1] for before, now in pairwise(steps)):
        return None
    seconds, joules = steps[-1][0] - steps[0][0], steps[-1][1] - steps[0][1]
    if seconds < LEAST_S:
        return None
    energy_mj = joules / seconds * (drawn.ended_s - drawn.began_s) / drawn.calls * 1e3
    return energy_mj if math.isfinite(energy_mj) else None


def add_energy(
    latencies: Sequence[Latency], times: Iterable[ProcessTimes], points: Sequence[Point]
) -> tuple[tuple[Latency, ...], str]:
    """The latencies with both sides' energy per call, and a note that says why some have none."""
    energies = {
        (process.case, process.side): energy_a_call(points, process.drawn)
        for process in times
        if process.drawn is not None
    }
    unclear = sorted({case for (case, _), energy in energies.items() if energy is None})
    unmeasured = sorted({latency.case for latency in latencies} - {case for case, _ in energies})
    notes = []
    if unclear:
        notes.append(f"no energy a call of {', '.join(unclear)}: the device's counter moved too rarely")
    if unmeasured:
        notes.append(
            f"energy a call was not measured of {', '.join(unmeasured)}: too short, or the time for timing was up"
        )
    with_energy = tuple(
        msgspec.structs.replace(
            latency,
            baseline=_add_to_side(latency.baseline, energies.get((latency.case, BASELINE))),
            candidate=_add_to_side(latency.candidate, energies.get((latency.case, CANDIDATE))),
        )
        for latency in latencies
    )
    return with_energy, "; ".join(notes)


def _add_to_side(side: Timed | None, energy_mj: float | None) -> Timed | None:
    return None if side is None else msgspec.structs.replace(side, energy_mj=energy_mj)
