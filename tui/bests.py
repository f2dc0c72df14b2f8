"""Words for the best measured attempts of sessions."""

from __future__ import annotations

from sessions.bests import Measured
from sessions.info import SessionInfo

from .vocabulary import interval, times


def speedup_words(measured: Measured) -> str:
    """Return `1.84x`, or `>=1.84x` if the launch floor hides a part of it."""
    return f"{measured.bound.sign}{times(measured.speedup)}"


def speedup_with_interval(measured: Measured) -> str:
    """Return `1.84x [1.79, 1.88]`; without the interval if a case has none."""
    words = speedup_words(measured)
    if measured.low is None or measured.high is None:
        return words
    return f"{words} {interval(measured.low, measured.high)}"


def fastest(info: SessionInfo) -> Measured | None:
    """Return the measured attempt with the greatest speedup of a session's bests; `None` if nothing was measured."""
    return max(info.measured or (), key=lambda measured: measured.ranked, default=None)
