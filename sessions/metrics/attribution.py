"""How much of correctness task category and method explain: logistic attribution, as KernelBench-X reports it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import msgspec

from .attempt_row import AttemptRow

LOGIT_LIMIT = 30.0
"""A level that always succeeds or always fails has no finite coefficient; its deviance is 0 to the last digit here."""
SWEEPS = 500
CONVERGED = 1e-10
"""Change of the deviance, relative to the null deviance, at which the fit ends."""

Level = Hashable


class ExplainedShares(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the null deviance, 0 to 1, that logistic models of correctness explain."""

    outcomes: int
    alone: Mapping[str, float]
    """By factor: the model with this factor only."""
    added: Mapping[str, float]
    """By factor: the model with all factors, minus the model without this one."""
    together: float
    """The model with all factors, without interactions."""


def explained_deviance(
    rows: Iterable[AttemptRow], factors: Mapping[str, Callable[[AttemptRow], Level]]
) -> ExplainedShares | None:
    """Returns how much of the deviance of `row.correct` each factor explains (source: KernelBench-X; McFadden, 1974).

    A row is one outcome: give the best row of each task and method, and as factors for example category and method. `None` if
    all outcomes are equal.
    """
    outcomes = [(tuple(of(row) for of in factors.values()), row.correct) for row in rows if row.counted]
    null = _deviance(outcomes, ())
    if not outcomes or null == 0:
        return None
    places = range(len(factors))
    together = 1 - _deviance(outcomes, tuple(places)) / null
    without = {
        name: 1 - _deviance(outcomes, tuple(place for place in places if place != left_out)) / null
        for left_out, name in enumerate(factors)
    }
    return ExplainedShares(
        outcomes=len(outcomes),
        alone={name: 1 - _deviance(outcomes, (place,)) / null for place, name in enumerate(factors)},
        added={name: max(0.0, together - share) for name, share in without.items()},
        together=together,
    )


def _deviance(outcomes: Sequence[tuple[tuple[Level, ...], bool]], factors: tuple[int, ...]) -> float:
    """Minus twice the greatest log-likelihood of a logistic model with an effect for each level of these factors.

    One level at a time takes its best coefficient while the others stay; the likelihood is concave, so this converges.
    """
    trials, successes = Counter[tuple[Level, ...]](), Counter[tuple[Level, ...]]()
    for levels, correct in outcomes:
        cell = tuple(levels[factor] for factor in factors)
        trials[cell] += 1
        successes[cell] += correct
    if len(factors) < 2:
        # With one factor, each level has its own share.
        return math.fsum(
            _cell_deviance(successes[cell] / count, count, successes[cell]) for cell, count in trials.items()
        )
    effects: dict[tuple[int, Level], float] = {}
    members: dict[tuple[int, Level], list[tuple[Level, ...]]] = {}
    for cell in trials:
        for key in enumerate(cell):
            members.setdefault(key, []).append(cell)
            effects[key] = 0.0

    def share(cell: tuple[Level, ...]) -> float:
        return _logistic(sum(effects[key] for key in enumerate(cell)))

    null = last = math.inf
    for _ in range(SWEEPS):
        for key, cells in members.items():
            wanted = sum(successes[cell] for cell in cells)
            rest = [
                (trials[cell], sum(effects[other] for other in enumerate(cell)) - effects[key])
                for cell in cells
            ]
            effects[key] = _best_effect(wanted, rest)
        deviance = math.fsum(
            _cell_deviance(share(cell), count, successes[cell]) for cell, count in trials.items()
        )
        null = deviance if math.isinf(null) else null
        if last - deviance <= CONVERGED * max(null, 1.0):
            return deviance
        last = deviance
    return last


def _best_effect(wanted: int, rest: Sequence[tuple[int, float]]) -> float:
    """The effect with which the expected successes are those wanted, by bisection between the limits."""
    low, high = -LOGIT_LIMIT, LOGIT_LIMIT
    for _ in range(60):
        middle = (low + high) / 2
        if sum(count * _logistic(logit + middle) for count, logit in rest) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else (e := math.exp(logit)) / (1 + e)


def _cell_deviance(share: float, trials: int, successes: int) -> float:
    failures = trials - successes
    likelihood = (successes * math.log(share) if successes else 0.0) + (
        failures * math.log1p(-share) if failures else 0.0
    )
    return -2 * likelihood
