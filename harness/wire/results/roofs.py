"""The share of a device's practical roof that a timed case reaches, and cases that are too short for it."""

from __future__ import annotations

from typing import NamedTuple

from .latency import Bound, Efficiency, Latency, Outcome


class RoofShare(NamedTuple):
    """Share of the roof that limits one case."""

    share: float
    """1 is the roof: the fastest copy, or a large matrix product, that this session measured on this device."""
    limit: str
    """`memory` or `compute`."""
    is_of_peak: bool = False
    """True if 1 is the vendor's peak: no product was measured, but this share of its peak is the larger one."""

    @property
    def limit_words(self) -> str:
        """`memory`, or `compute peak` for a share of the vendor's peak."""
        return f"{self.limit} peak" if self.is_of_peak else self.limit


def roof_share(latency: Latency) -> RoofShare | None:
    """Return the larger of the two shares; `None` if the roof is unknown, the share is suspect, or the launch limits.

    Not every dtype has a measured product. A case without one that comes closer to the vendor's peak of compute than to a
    copy is limited by compute, so its share of that peak is returned.
    """
    used = trusted_efficiency(latency)
    if used is None:
        return None
    measured = larger_share(used.io_measured, used.mfu_measured)
    if (
        used.mfu_measured is None
        and used.mfu is not None
        and measured is not None
        and used.mfu > measured.share
    ):
        return RoofShare(used.mfu, "compute", is_of_peak=True)
    return measured


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


def is_launch_bound(latency: Latency) -> bool:
    """True if the candidate takes hardly longer than an empty kernel."""
    return latency.outcome is Outcome.TOO_SHORT or latency.bound is Bound.AT_LEAST
