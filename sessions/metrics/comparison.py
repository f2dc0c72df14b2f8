"""Compares two sides, each the rows of sessions: which solves more tasks, and which has faster kernels.

Each test is paired by task. Instances of one task are not independent, so a task counts once.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

import msgspec

from .attempt_row import AttemptRow
from .equal_budget import EqualCost, TaskPair, pair_tasks

LEVEL = 0.05
"""A difference is proven if its corrected p is at most this."""
LEAST_TASKS = 6
"""Least number of tasks that can prove a difference of speeds: 2 of 64 sign patterns are rare enough, 2 of 32 are not."""
DRAWS = 2000
"""Sign patterns that are drawn where they are too many to list."""
ALL_SIGNS = 11
"""Up to so many tasks all sign patterns are listed: 2048."""


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
    comparisons: int
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


def compare(
    first: Iterable[AttemptRow],
    second: Iterable[AttemptRow],
    budget: EqualCost = EqualCost.ATTEMPTS,
    *,
    draws: int = DRAWS,
) -> Comparison:
    """Returns the comparison of two sides at equal budget. Deterministic: the draws have a fixed seed."""
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
    made = [difference for difference in (solved, speed) if difference is not None]
    corrected = iter(holm([difference.p for difference in made]))
    solved, speed = (
        msgspec.structs.replace(difference, p_corrected=next(corrected)) if difference is not None else None
        for difference in (solved, speed)
    )
    return Comparison(
        budget=budget,
        pairs=paired.pairs,
        comparisons=len(made),
        solved=solved,
        speed=speed,
        left_out=paired.left_out,
    )


def exact_mcnemar(only_a: int, only_b: int) -> float:
    """Returns the two-sided p of McNemar's exact test on the numbers of tasks that only one side solved.

    Twice the smaller tail of a binomial distribution with share 1/2, at most 1. Source: McNemar, Psychometrika 12, 1947.
    """
    tasks = only_a + only_b
    tail = sum(math.comb(tasks, k) for k in range(min(only_a, only_b) + 1))
    return min(1.0, tail / 2 ** (tasks - 1)) if tasks else 1.0


def discordant_interval(only_a: int, only_b: int) -> tuple[float, float] | None:
    """Returns the 95 % interval of the number of tasks that B solves more, given how many only one side solves.

    Clopper and Pearson, Biometrika 26, 1934: the inversion of the exact test, so it excludes 0 exactly if p < 0.05. `None` if
    both sides solved the same tasks.
    """
    tasks = only_a + only_b
    if not tasks:
        return None
    most_a, most_b = (_greatest_share(count, tasks) for count in (only_a, only_b))
    return tasks * (1 - 2 * most_a), tasks * (2 * most_b - 1)


def _greatest_share(successes: int, trials: int) -> float:
    """Returns the greatest share with which so few successes are not too rare: upper end of the 95 % interval."""
    if successes == trials:
        return 1.0

    def tail(share: float) -> float:
        """The chance of at most so many successes."""
        # Logarithms: the binomial coefficients of a thousand tasks are no floats.
        return math.fsum(
            math.exp(_log_comb(trials, k) + k * math.log(share) + (trials - k) * math.log1p(-share))
            for k in range(successes + 1)
        )

    return _boundary(successes / trials, 1.0, lambda share: tail(share) > LEVEL / 2)


def _log_comb(total: int, chosen: int) -> float:
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)


class SignFlips(NamedTuple):
    """Result of a randomization test."""

    p: float
    interval: tuple[float, float] | None
    """95 % interval of the mean; `None` for fewer than six tasks, which never give p <= 0.05."""


def sign_flips(log_ratios: Sequence[float], *, draws: int = DRAWS) -> SignFlips:
    """Returns the two-sided randomization test that flips the sign of each task's log ratio.

    If the sides are equal, each sign is as likely as the other. The test is exact for any number of tasks; a percentile
    bootstrap calls equal sides different too often if tasks are few. The interval is the inversion of the test, so it excludes
    0 exactly if p <= 0.05. Source: Fisher, The Design of Experiments, 1935.
    """
    tasks = len(log_ratios)
    # One pattern is one complex number: the sum of the flipped ratios, and the sum of the signs.
    terms = [complex(ratio, 1) for ratio in log_ratios]
    total = math.fsum(log_ratios)
    if tasks <= ALL_SIGNS:
        flipped = [0j]
        for term in terms:
            flipped = [*(before + term for before in flipped), *(before - term for before in flipped)]
    else:
        chooser = random.Random(tasks)
        flipped = [0j] * draws
        for term in terms:
            flipped = list(map(operator.add, flipped, chooser.choices((term, -term), k=draws)))
        flipped.append(complex(total, tasks))

    def p_of(mean: float) -> float:
        """The p of the log ratios minus this mean."""
        seen = abs(total - tasks * mean) * (1 - 1e-9)
        return sum(abs(pattern.real - pattern.imag * mean) >= seen for pattern in flipped) / len(flipped)

    if tasks < LEAST_TASKS:
        return SignFlips(p_of(0.0), None)
    low, high = (
        _boundary(total / tasks, end, lambda mean: p_of(mean) > LEVEL)
        for end in (min(log_ratios) - 1, max(log_ratios) + 1)
    )
    return SignFlips(p_of(0.0), (low, high))


def _boundary(inside: float, outside: float, is_inside: Callable[[float], bool]) -> float:
    """Returns where a condition that holds at `inside` and not at `outside` ceases to hold."""
    for _ in range(30):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return inside


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns each p corrected for the number of tests, in the same order (Holm, Scand. J. Statist. 6, 1979)."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected
