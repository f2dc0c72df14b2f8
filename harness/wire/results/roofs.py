"""The share of a device's practical roof that a timed case reaches, and cases that a launch limits instead."""

from __future__ import annotations

from typing import NamedTuple

from .latency import Bound, Efficiency, Latency, Outcome

ROOF = 0.95
"""Share of its practical roof from which a case counts as at the roof."""


class RoofShare(NamedTuple):
    """Share of the roof that limits one case."""

    share: float
    """1 is the roof: the fastest copy, or a large matrix product, that this session measured on this device.

    A product that torch does not measure, as of int8, counts by the vendor's peak: `is_of_peak`.
    """
    limit: str
    """`memory` or `compute`."""
    is_of_peak: bool = False
    """True if 1 is the vendor's peak of compute, because no product was measured."""

    @property
    def limit_words(self) -> str:
        """`memory`, or `compute peak` for a share of the vendor's peak."""
        return f"{self.limit} peak" if self.is_of_peak else self.limit


def roof_share(latency: Latency) -> RoofShare | None:
    """Return the larger of the two shares; `None` if the roof is unknown, the share is suspect, or the launch limits."""
    used = trusted_efficiency(latency)
    return None if used is None else _reached(used)


def peak_share(latency: Latency) -> RoofShare | None:
    """Return the larger share of the vendor's peaks; `None` as in `roof_share`."""
    used = trusted_efficiency(latency)
    return None if used is None else larger_share(used.io_utilisation, used.mfu)


def trusted_efficiency(latency: Latency) -> Efficiency | None:
    """Return the efficiency of a case; `None` if it is unknown or suspect, or the launch limits."""
    used = latency.efficiency
    return None if used is None or used.suspect or is_launch_bound(latency) else used


def larger_share(memory: float | None, compute: float | None) -> RoofShare | None:
    """Return the larger of two shares that may be unknown."""
    shares = [
        RoofShare(share, limit)
        for share, limit in ((memory, "memory"), (compute, "compute"))
        if share is not None
    ]
    return max(shares, default=None)


def _reached(used: Efficiency) -> RoofShare | None:
    measured = larger_share(used.io_measured, used.mfu_measured)
    if measured is None or used.mfu is None or used.mfu_measured is not None or used.mfu <= measured.share:
        return measured
    return RoofShare(used.mfu, "compute", is_of_peak=True)


def room(latency: Latency) -> float | None:
    """Return by which factor a case may still get faster: its time over that at its roof, or over an empty kernel's.

    1 from `ROOF` on, and if the case takes hardly longer than an empty kernel; `None` if no limit is known.
    """
    if latency.speedup is None or is_launch_bound(latency):
        return 1.0
    if latency.floor_ms and is_shorter_than_launch(latency):
        share = latency.floor_ms / latency.candidate_ms
    elif (used := roof_share(latency)) is not None:
        share = used.share
    else:
        return None
    return 1.0 if share >= ROOF else 1.0 / share


def is_shorter_than_launch(latency: Latency) -> bool:
    """True if the case would take less than an empty kernel at its practical roof: the launch limits it, not the roof."""
    used = latency.efficiency
    share = None if used is None or used.suspect else _reached(used)
    return (
        share is not None
        and latency.floor_ms is not None
        and share.share * latency.candidate_ms < latency.floor_ms
    )


def is_launch_bound(latency: Latency) -> bool:
    """True if the candidate takes hardly longer than an empty kernel."""
    return latency.outcome is Outcome.TOO_SHORT or latency.bound is Bound.AT_LEAST
