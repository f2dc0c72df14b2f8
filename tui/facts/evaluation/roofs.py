"""Shares of a device's roofs that cases reach, as words and ranges."""

from __future__ import annotations

from collections.abc import Iterable

from harness import Evaluation, Latency
from harness.wire.results.ratios import FLOORS
from harness.wire.results.roofs import RoofShare, larger_share, roof_share, trusted_efficiency

NO_PRODUCT = (
    "Compute peak: no matrix product was measured for the case, so the share is of the vendor's peak."
)
"""Explains shares of the vendor's peak among shares of the practical roof."""


def peak_share(latency: Latency) -> RoofShare | None:
    """Return the larger share of the vendor's peaks; `None` as in `roof_share`."""
    used = trusted_efficiency(latency)
    return None if used is None else larger_share(used.io_utilisation, used.mfu)


def rate_words(latency: Latency) -> str:
    """Return the candidate's rate of what limits it, by the task's cost model: `3.12 TB/s` or `410 TFLOP/s`; empty as above."""
    used, share = trusted_efficiency(latency), peak_share(latency)
    if used is None or share is None:
        return ""
    is_memory = share.limit == "memory"
    rate = used.bytes_per_s if is_memory else used.flops_per_s
    return f"{rate / 1e12:.3g} {'TB/s' if is_memory else 'TFLOP/s'}"


def roof_range(evaluation: Evaluation) -> tuple[RoofShare, RoofShare] | None:
    """Return the smallest and the largest share of the roof over the cases; `None` if no case has a share."""
    return _ends(map(roof_share, evaluation.latency))


def peak_range(evaluation: Evaluation) -> tuple[RoofShare, RoofShare] | None:
    """Return the smallest and the largest share of the vendor's peaks; `None` if no case has a share."""
    return _ends(map(peak_share, evaluation.latency))


def has_peak_share(evaluation: Evaluation) -> bool:
    """Return whether the share of a case is one of the vendor's peak of compute, because no product was measured."""
    return any(share.is_of_peak for share in map(roof_share, evaluation.latency) if share is not None)


def _ends(shares: Iterable[RoofShare | None]) -> tuple[RoofShare, RoofShare] | None:
    values = [share for share in shares if share is not None]
    return (min(values), max(values)) if values else None


def roof_range_words(roof: tuple[RoofShare, RoofShare] | None) -> str:
    """Return the range over the cases: `84-97 %`; empty if it is not known."""
    if roof is None:
        return ""
    low, high = (f"{share.share * 100:.0f}" for share in roof)
    return f"{low} %" if low == high else f"{low}-{high} %"


def shortest_us(latency: Latency) -> float | None:
    """Return the shortest time in microseconds that is timed exactly in this case; `None` if it is unknown."""
    return None if latency.floor_ms is None else FLOORS[latency.method] * latency.floor_ms * 1e3
