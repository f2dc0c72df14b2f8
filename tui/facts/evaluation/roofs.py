"""The share of a device's roof that a case reaches, and cases that are too short for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness import Evaluation, Latency, Outcome
from harness.wire.results.latency import Bound, Efficiency
from harness.wire.results.ratios import FLOORS


class RoofShare(NamedTuple):
    """Share of the practical roof of the device in one case."""

    share: float
    """1 is the roof: the fastest copy, or a large matrix product, that this session measured on this device."""
    limit: str
    """`memory` or `compute`."""


def roof_share(latency: Latency) -> RoofShare | None:
    """Return the larger of the two shares; `None` if the roof is unknown, the share is suspect, or the launch limits."""
    used = _trusted(latency)
    return None if used is None else _larger(used.io_measured, used.mfu_measured)


def peak_share(latency: Latency) -> RoofShare | None:
    """Return the larger share of the vendor's peaks; `None` as in `roof_share`."""
    used = _trusted(latency)
    return None if used is None else _larger(used.io_utilisation, used.mfu)


def rate_words(latency: Latency) -> str:
    """Return the candidate's rate of what limits it, by the task's cost model: `3.12 TB/s` or `410 TFLOP/s`; empty as above."""
    used, share = _trusted(latency), peak_share(latency)
    if used is None or share is None:
        return ""
    is_memory = share.limit == "memory"
    rate = used.bytes_per_s if is_memory else used.flops_per_s
    return f"{rate / 1e12:.3g} {'TB/s' if is_memory else 'TFLOP/s'}"


def _trusted(latency: Latency) -> Efficiency | None:
    used = latency.efficiency
    return None if used is None or used.suspect or is_launch_bound(latency) else used


def _larger(memory: float | None, compute: float | None) -> RoofShare | None:
    shares = [
        RoofShare(share, limit)
        for share, limit in ((memory, "memory"), (compute, "compute"))
        if share is not None
    ]
    return max(shares, default=None)


def roof_range(evaluation: Evaluation) -> tuple[RoofShare, RoofShare] | None:
    """Return the smallest and the largest share of the roof over the cases; `None` if no case has a share."""
    return _ends(map(roof_share, evaluation.latency))


def peak_range(evaluation: Evaluation) -> tuple[RoofShare, RoofShare] | None:
    """Return the smallest and the largest share of the vendor's peaks; `None` if no case has a share."""
    return _ends(map(peak_share, evaluation.latency))


def _ends(shares: Iterable[RoofShare | None]) -> tuple[RoofShare, RoofShare] | None:
    values = [share for share in shares if share is not None]
    return (min(values), max(values)) if values else None


def roof_range_words(roof: tuple[RoofShare, RoofShare] | None) -> str:
    """Return the range over the cases: `84-97 %`; empty if it is not known."""
    if roof is None:
        return ""
    low, high = (f"{share.share * 100:.0f}" for share in roof)
    return f"{low} %" if low == high else f"{low}-{high} %"


def is_launch_bound(latency: Latency) -> bool:
    """True if the candidate takes hardly longer than an empty kernel."""
    return latency.outcome is Outcome.TOO_SHORT or latency.bound is Bound.AT_LEAST


def shortest_us(latency: Latency) -> float | None:
    """Return the shortest time in microseconds that is timed exactly in this case; `None` if it is unknown."""
    return None if latency.floor_ms is None else FLOORS[latency.method] * latency.floor_ms * 1e3
