"""Sources that the Review screen compares an attempt with: baseline, base, and the best before it."""

from __future__ import annotations

from typing import NamedTuple

from sessions.state.state import AttemptState, InstanceState, SessionState
from sessions.state.winners import earlier_best
from tui.cockpit.attempts import base_of
from tui.cockpit.review_library import is_kernel


class Source(NamedTuple):
    """One source to compare with."""

    title: str
    """`baseline triton`, `base softmax#3/5`."""
    name: str
    source: str
    commit: str | None = None


def sources(
    state: SessionState,
    attempt: AttemptState,
    instance: InstanceState,
    baseline: str,
    baseline_name: str,
) -> list[Source]:
    """Return the sources to compare an attempt with, baseline first, each attempt once.

    `baseline` is the source of the baseline; empty if it is not known. PyTorch code comes last.
    """
    compared: list[Source] = []
    base, best = base_of(state, attempt), earlier_best(attempt, instance)
    for word, earlier in (("base", base), ("best before", best)):
        if earlier is not None and earlier.source and all(side.name != earlier.attempt for side in compared):
            title = f"{word} {earlier.attempt}"
            compared.append(Source(title, earlier.attempt, earlier.source, earlier.commit))
    if baseline:
        side = Source(f"baseline {baseline_name}".rstrip(), baseline_name or "baseline", baseline)
        compared.insert(0 if is_kernel(baseline) else len(compared), side)
    return compared
