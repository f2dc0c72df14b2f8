"""What the Review screen compares an attempt with: baseline, base, the best before it; or the code alone."""

from __future__ import annotations

from typing import NamedTuple

from sessions.state import AttemptState, InstanceState
from tui.cockpit.attempts import find_base
from tui.cockpit.review_baseline import is_kernel
from tui.cockpit.review_queue import earlier_best


class Other(NamedTuple):
    """One side to compare with."""

    title: str
    """`baseline triton`, `base softmax#3/5`."""
    name: str
    source: str
    commit: str | None = None


def others(attempt: AttemptState, instance: InstanceState, baseline: str, baseline_name: str) -> list[Other]:
    """Return the sources to compare an attempt with, the most telling first, each attempt once.

    `baseline` is the source of the baseline; empty if it is not known.
    """
    found: list[Other] = []
    base, best = find_base(instance, attempt), earlier_best(attempt, instance)
    for word, other in (("base", base), ("best before", best)):
        if other is not None and other.source and all(side.name != other.attempt for side in found):
            found.append(Other(f"{word} {other.attempt}", other.attempt, other.source, other.commit))
    if baseline:
        side = Other(f"baseline {baseline_name}".rstrip(), baseline_name or "baseline", baseline)
        found.insert(0 if is_kernel(baseline) else len(found), side)
    return found
