"""Successive halving: which variants of a sweep go on from a rung of few samples to one of more, and at last to the judge.

All that a sweep named get little time each, the better half several times as much, until as many are left as may be judged
whole (Jamieson and Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization, 2016). What a rung
finds is an estimate; only the judge's whole measurement is a latency.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness import ROUGH, Effort, Verdict
from sessions.events import RungEntry, SweepRung, SweptVariant

FIELD = 4
"""Variants that begin for each that may be judged: two rungs that each keep a half."""


def rungs(count: int, most: int) -> list[tuple[Effort, int]]:
    """The effort of each rung and how many it keeps at most, until of `count` variants no more than `most` are left.

    Each keeps a half and the last has the most samples; where so many halvings would need more efforts than there are, the
    first keeps less. None where nothing has to leave.
    """
    found: list[tuple[Effort, int]] = []
    keeps = most
    for effort in reversed(ROUGH):
        if count <= keeps:
            break
        found.insert(0, (effort, keeps))
        keeps *= 2
    return found


def decided(entries: Sequence[RungEntry], most: int) -> tuple[RungEntry, ...]:
    """The entries best first, at most `most` of them kept: those that were right, the fastest by estimate before those without
    one, which stay in their order. Who was not right leaves.
    """
    ranked = sorted(entries, key=_standing, reverse=True)
    return tuple(
        msgspec.structs.replace(entry, kept=number < most and entry.verdict == Verdict.CORRECT)
        for number, entry in enumerate(ranked)
    )


def survivors(rung: SweepRung, variants: Sequence[SweptVariant]) -> list[SweptVariant]:
    """Those that go on, best first."""
    by_changes = {variant.changes: variant for variant in variants}
    return [by_changes[entry.changes] for entry in rung.entries if entry.kept]


def _standing(entry: RungEntry) -> tuple[bool, bool, float]:
    return entry.verdict == Verdict.CORRECT, entry.estimate is not None, entry.estimate or 0.0
