"""Shares of a device's roofs that cases reach, as words and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.wire.results.roofs import RoofShare
from sessions.state.cases import CaseRow

NO_PRODUCT = (
    "Compute peak: no matrix product was measured for the case, so the share is of the vendor's peak."
)
"""Explains shares of the vendor's peak among shares of the practical roof."""


def range_of(shares: Iterable[RoofShare | None]) -> tuple[RoofShare, RoofShare] | None:
    """Return the smallest and the largest share over the cases; `None` if no case has a share."""
    values = [share for share in shares if share is not None]
    return (min(values), max(values)) if values else None


def has_peak_share(rows: Iterable[CaseRow]) -> bool:
    """Return whether the share of a case is one of the vendor's peak of compute, because no product was measured."""
    return any(row.roof.is_of_peak for row in rows if row.roof is not None)


def roof_range_words(rows: Sequence[CaseRow]) -> str:
    """Return the range of the shares of the roof over the cases: `84-97 %`; empty if it is not known."""
    ends = range_of(row.roof for row in rows)
    if ends is None:
        return ""
    low, high = (f"{share.share * 100:.0f}" for share in ends)
    return f"{low} %" if low == high else f"{low}-{high} %"
