"""The formulas of metrics: shares, pass@k, means, fast_p and speedup@k.

A share is 0 to 1. A speedup is baseline time over candidate time, without unit; only correct attempts have one. `None` means
that nothing counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, geometric_mean

FAST_P = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
"""The values of p in tables of fast_p."""


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


def mean_speedup(speedups: Iterable[float]) -> float | None:
    """Returns the arithmetic mean; over GEAK's speedups it is the speedup of GEAK's tables. `None` without speedups."""
    values = list(speedups)
    return fmean(values) if values else None


def geomean_speedup(speedups: Iterable[float]) -> float | None:
    """Returns the geometric mean (source: Fleming and Wallace, CACM 29(3), 1986); `None` without speedups."""
    values = list(speedups)
    return geometric_mean(values) if values else None


def fast_p(speedups: Iterable[float | None], p: float) -> float | None:
    """Returns the share of the samples that is more than `p` times as fast as the baseline, 0 to 1.

    A failed sample has speedup 0. `None` without samples, or if a correct sample was not timed: its speedup is `None`
    or no number. Source: KernelBench; strict `>`.
    """
    values = [math.nan if speedup is None else speedup for speedup in speedups]
    if not values or any(map(math.isnan, values)):
        return None
    return sum(value > p for value in values) / len(values)


def expected_best(speedups: Sequence[float], k: int) -> float:
    """Returns the expected greatest of `k` values that are drawn without replacement: an unbiased estimate.

    The j-th smallest of n values is the greatest of C(j - 1, k - 1) of the C(n, k) draws. Raises `ValueError` unless
    1 <= k <= number of values.
    """
    if not 1 <= k <= len(speedups):
        raise ValueError(f"speedup@{k} of {len(speedups)} samples does not exist")
    draws = math.comb(len(speedups), k)
    ordered = enumerate(sorted(speedups))
    return math.fsum(math.comb(place, k - 1) * speedup for place, speedup in ordered) / draws
