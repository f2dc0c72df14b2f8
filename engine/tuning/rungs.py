"""Successive halving: decides which variants of a sweep stay from rung to rung, and which the judge gets.

Every variant gets a short measurement, and the better half a longer one, until only as many are left as may be
judged. A rung gives estimates; only the judge's complete measurement is a latency.

Source: Jamieson and Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization, 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from harness import ROUGH, Effort, Verdict
from sessions.events import RungEntry, SweepRung, SweptVariant

FIELD = 4
"""Variants at the start for each variant that may be judged: enough for two rungs that each keep a half."""


class PlannedRung(NamedTuple):
    """A rung before it is made."""

    number: int
    """From 1."""
    effort: Effort
    keeps: int
    """Most variants that stay."""


def rungs(count: int, most: int) -> list[PlannedRung]:
    """Returns the rungs until at most `most` of `count` variants are left.

    Each rung keeps a half, and the last rung takes the most samples. If there are fewer efforts than halvings, the
    first rung keeps less. Empty if no variant has to leave.
    """
    plan: list[tuple[Effort, int]] = []
    keeps = most
    for effort in reversed(ROUGH):
        if count <= keeps:
            break
        plan.insert(0, (effort, keeps))
        keeps *= 2
    return [PlannedRung(number, effort, kept) for number, (effort, kept) in enumerate(plan, 1)]


def mark_kept(entries: Sequence[RungEntry], most: int) -> tuple[RungEntry, ...]:
    """Returns the entries best first, with at most `most` of them marked as kept.

    Correct entries with an estimate come first, the fastest at the top, then correct entries without one in their
    order. An entry that is not correct is not kept. If entries have estimates by case, the best of each case comes first, then
    the second of each case, and so on. A case without a gain does not count.
    """
    ranked = sorted(entries, key=_sort_key, reverse=True)
    correct = [entry for entry in ranked if entry.verdict == Verdict.CORRECT]
    gaining = {case for entry in correct for case, ratio in entry.by_case.items() if ratio > 1}
    by_case = [
        sorted(correct, key=lambda entry: entry.by_case.get(case, 0.0), reverse=True)
        for case in sorted(gaining)
    ]
    ranked = list({entry.changes: entry for entry in chain(*zip(*by_case, strict=True), ranked)}.values())
    return tuple(
        msgspec.structs.replace(entry, kept=number < most and entry.verdict == Verdict.CORRECT)
        for number, entry in enumerate(ranked)
    )


def survivors(rung: SweepRung, variants: Sequence[SweptVariant]) -> list[SweptVariant]:
    """Returns the variants that a rung kept, best first."""
    by_changes = {variant.changes: variant for variant in variants}
    return [by_changes[entry.changes] for entry in rung.entries if entry.kept]


def _sort_key(entry: RungEntry) -> tuple[bool, bool, float]:
    return entry.verdict == Verdict.CORRECT, entry.estimate is not None, entry.estimate or 0.0
