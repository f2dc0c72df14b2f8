"""Compares two sides, each the rows of sessions: which solves more tasks, and which has faster kernels.

Each test is paired by task. Instances of one task are not independent, so a task counts once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from statistics import fmean
from typing import NamedTuple

import msgspec

from .attempt_row import AttemptRow
from .equal_budget import EqualCost, TaskPair, pair_tasks
from .intervals import scipy_stats

LEVEL = 0.05
"""A difference is proven if its corrected p is at most this."""
LEAST_TASKS = 6
"""Least number of tasks that can prove a difference of speeds: 2 of 64 sign patterns are rare enough, 2 of 32 are not."""
DRAWS = 2048
"""Sign patterns that are drawn where they are too many to list."""
ALL_SIGNS = 11
"""Up to so many tasks all sign patterns are listed: 2048."""
ROUNDING = 1e-12
"""Sums of logarithms that differ by less are equal."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """B compared with A in one quantity."""

    tasks: int
    value: float
    """Tasks that B solved more, or the geometric mean of B's speedups over A's."""
    interval: tuple[float, float] | None
    """The 95 % interval, not corrected for the number of comparisons; `None` if the tasks give none."""
    p: float
    """Chance of a difference as large or larger between equal sides."""
    p_corrected: float = 1.0
    """Corrected by Holm for all comparisons that were made."""

    @property
    def is_proven(self) -> bool:
        """True if the corrected p is small enough."""
        return self.p_corrected <= LEVEL


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two sides at equal budget. In each pair side A comes first."""

    budget: EqualCost
    pairs: tuple[TaskPair, ...]
    comparisons: int = 0
    """Number of tests, for which each p is corrected."""
    solved: Difference | None = None
    """`None` if the sides share no task."""
    speed: Difference | None = None
    """`None` if no task has speedups that are compared."""
    left_out: dict[str, int]

    def only(self, side: int) -> list[str]:
        """Returns the tasks that only this side (0 or 1) solved."""
        return [pair.task for pair in self.pairs if pair.solved[side] and not pair.solved[1 - side]]

    @property
    def timed(self) -> list[TaskPair]:
        """The tasks with speedups that are compared."""
        return [pair for pair in self.pairs if pair.log_ratio is not None]


def compare_all(
    sides: Sequence[Sequence[AttemptRow]], budget: EqualCost = EqualCost.ATTEMPTS, *, draws: int = DRAWS
) -> list[Comparison]:
    """Returns the comparison of each two sides, in the order of `itertools.combinations`.

    Each p is corrected for all tests that are made. Deterministic: the draws have a fixed seed. Raises `ExtraMissing`.
    """
    compared = [_compare(first, second, budget, draws) for first, second in combinations(sides, 2)]
    tests = [test for comparison in compared for test in (comparison.solved, comparison.speed) if test]
    corrected = iter(holm([test.p for test in tests]))

    def correct(test: Difference | None) -> Difference | None:
        return test and msgspec.structs.replace(test, p_corrected=next(corrected))

    return [
        msgspec.structs.replace(
            comparison,
            comparisons=len(tests),
            solved=correct(comparison.solved),
            speed=correct(comparison.speed),
        )
        for comparison in compared
    ]


def _compare(
    first: Sequence[AttemptRow], second: Sequence[AttemptRow], budget: EqualCost, draws: int
) -> Comparison:
    paired = pair_tasks(first, second, budget)
    only = [sum(pair.solved == (side == 0, side == 1) for pair in paired.pairs) for side in (0, 1)]
    logs = [pair.log_ratio for pair in paired.pairs if pair.log_ratio is not None]
    solved = speed = None
    if paired.pairs:
        solved = Difference(
            tasks=len(paired.pairs),
            value=only[1] - only[0],
            interval=discordant_interval(*only),
            p=exact_mcnemar(*only),
        )
    if logs:
        flips = sign_flips(logs, draws=draws)
        interval = (math.exp(flips.interval[0]), math.exp(flips.interval[1])) if flips.interval else None
        speed = Difference(tasks=len(logs), value=math.exp(fmean(logs)), interval=interval, p=flips.p)
    return Comparison(budget=budget, pairs=paired.pairs, solved=solved, speed=speed, left_out=paired.left_out)


def exact_mcnemar(only_a: int, only_b: int) -> float:
    """Returns the two-sided p of McNemar's exact test on the numbers of tasks that only one side solved.

    A binomial test with share 1/2. Source: McNemar, Psychometrika 12, 1947.
    """
    tasks = only_a + only_b
    return float(scipy_stats().binomtest(only_b, tasks).pvalue) if tasks else 1.0


def discordant_interval(only_a: int, only_b: int) -> tuple[float, float] | None:
    """Returns the 95 % interval of the number of tasks that B solves more, given how many only one side solves.

    Clopper and Pearson, Biometrika 26, 1934: the inversion of the exact test, so it excludes 0 exactly if p < 0.05. `None` if
    both sides solved the same tasks.
    """
    tasks = only_a + only_b
    if not tasks:
        return None
    share = scipy_stats().binomtest(only_b, tasks).proportion_ci(1 - LEVEL, method="exact")
    return tasks * (2 * float(share.low) - 1), tasks * (2 * float(share.high) - 1)


class SignFlips(NamedTuple):
    """Result of a randomization test."""

    p: float
    interval: tuple[float, float] | None
    """95 % interval of the mean; `None` for fewer than six tasks, which never give p <= 0.05."""


def sign_flips(log_ratios: Sequence[float], *, draws: int = DRAWS) -> SignFlips:
    """Returns the two-sided randomization test that flips the sign of each task's log ratio.

    If the sides are equal, each sign is as likely as the other. The test is exact for any number of tasks; a percentile
    bootstrap calls equal sides different too often if tasks are few. p is that of `scipy.stats.permutation_test`, which gives no
    interval. The interval is the inversion of the test, so it excludes 0 exactly if p <= 0.05. Each end is a quantile: a mean
    that is subtracted makes a pattern as extreme as the data at the mean of the flipped ratios, or of the others.
    Source: Fisher, The Design of Experiments, 1935.
    """
    import numpy as np

    tasks, total = len(log_ratios), math.fsum(log_ratios)
    if tasks <= ALL_SIGNS:
        flips = np.array([*product((0.0, 1.0), repeat=tasks)])
    else:
        flips = np.random.default_rng(tasks).integers(2, size=(draws, tasks)).astype(float)
        flips[0] = 0.0  # the data themselves are a pattern too
    flipped, numbers = flips @ np.array(log_ratios), flips.sum(axis=1)
    p = float((np.abs(total - 2 * flipped) >= abs(total) - ROUNDING).mean())
    if tasks < LEAST_TASKS:
        return SignFlips(p, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.array([flipped / numbers, (total - flipped) / (tasks - numbers)])
    lows = np.sort(np.where(numbers % tasks, means.min(axis=0), -math.inf))
    highs = np.sort(np.where(numbers % tasks, means.max(axis=0), math.inf))[::-1]
    place = int(LEVEL * len(flips))
    return SignFlips(p, (float(lows[place]) - ROUNDING, float(highs[place]) + ROUNDING))


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns each p corrected for the number of tests, in the same order (Holm, Scand. J. Statist. 6, 1979)."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected
