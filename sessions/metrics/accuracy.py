"""Shares and pass@k. A share is 0 to 1; `None` means that nothing counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def share(facts: Iterable[bool]) -> float | None:
    """Returns the share of true facts.

    Over samples that ran it is the call accuracy, over correct samples the execution accuracy (TritonBench, GEAK).
    """
    counts = [bool(fact) for fact in facts]
    return sum(counts) / len(counts) if counts else None


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Returns the unbiased chance that at least one of `k` drawn samples is correct (source: Chen et al., 2021).

    1 - C(n - c, k) / C(n, k), in exact integers until the last division. Raises `ValueError` unless 1 <= k <= samples
    and 0 <= correct <= samples.
    """
    if not (1 <= k <= samples and 0 <= correct <= samples):
        raise ValueError(f"pass@{k} of {samples} samples with {correct} correct does not exist")
    draws = math.comb(samples, k)
    return (draws - math.comb(samples - correct, k)) / draws


def mean_pass_at_k(tasks: Sequence[tuple[int, int]], k: int) -> float | None:
    """Returns the mean of `pass_at_k` over tasks given as (samples, correct).

    `None` if a task has fewer than `k` samples.
    """
    if not tasks or any(samples < k for samples, _ in tasks):
        return None
    return math.fsum(pass_at_k(samples, correct, k) for samples, correct in tasks) / len(tasks)
