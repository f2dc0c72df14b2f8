"""How much timing a candidate may cost: all that a latency needs, or a few samples that tell variants of one kernel apart."""

from __future__ import annotations

import msgspec

from . import ratios


class Effort(msgspec.Struct, frozen=True):
    """What the clock may spend on one candidate."""

    pairs: int = ratios.PAIRS_A_LOOK
    """Processes of each side, by look."""
    looks: int = ratios.LOOKS
    least_rounds: int = 3
    most_rounds: int = 15
    """Blocks of samples that each process takes."""
    budget_s: float = 30.0
    """For the samples of all cases together, while the device is held alone."""
    energy: bool = False
    """Let each side's calls go on by themselves for the device's energy counter, more than a second a case and side."""
    rough: bool = False
    """What comes of it is an estimate: no interval, nothing confirmed from outside, no launch tape."""


WHOLE = Effort()
WITH_ENERGY = Effort(energy=True)
"""For what is measured once: a winner's confirmation, a kernel that somebody asks about."""
ROUGH = (
    Effort(pairs=1, looks=1, least_rounds=1, most_rounds=1, budget_s=5.0, rough=True),
    Effort(pairs=2, looks=1, least_rounds=1, most_rounds=3, budget_s=15.0, rough=True),
)
"""Rungs of a sweep, cheapest first: the second takes up to six times the samples of the first, in other processes."""
