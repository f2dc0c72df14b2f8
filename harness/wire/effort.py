"""How much timing a candidate may cost: a full latency, or a few samples to rank the variants of one kernel."""

from __future__ import annotations

import msgspec

from .results import ratios

PLAYERS = ratios.PAIRS_A_LOOK
"""Processes of a GPU that play the launch tapes of baseline and candidate, for one timing after the other: one for each pair."""


class Effort(msgspec.Struct, frozen=True):
    """The clock's budget for one candidate."""

    pairs: int = ratios.PAIRS_A_LOOK
    """Pairs of a baseline and a candidate, per look: each in a process of its own."""
    looks: int = ratios.LOOKS
    """At most so many looks, each in new players."""
    least_looks: int = 1
    least_rounds: int = 3
    most_rounds: int = 15
    """Bounds for the blocks of samples that each process takes."""
    budget_s: float = 30.0
    """For all cases and looks together, under the exclusive lease."""
    sustained: bool = False
    """Time plain calls without pause too, about two seconds per case and side."""
    rough: bool = False
    """The result is an estimate: no interval, no confirmation from outside the guest."""


WHOLE = Effort()
EXAM = Effort(least_looks=ratios.LOOKS)
"""For the timing that confirms a speedup: six processes."""
SUSTAINED = Effort(sustained=True, budget_s=120.0)
"""For `wavedeck eval --sustained`."""
ROUGH = (
    Effort(pairs=1, looks=1, least_rounds=1, most_rounds=1, budget_s=5.0, rough=True),
    Effort(pairs=2, looks=1, least_rounds=1, most_rounds=3, budget_s=15.0, rough=True),
)
"""Rungs of a sweep, cheapest first. The second takes up to six times the samples of the first, in new processes."""
