"""How much of correctness task category and method explain: logistic attribution, as KernelBench-X reports it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .attempt_row import AttemptRow
from .intervals import scipy_stats

LOGIT_LIMIT = 30.0
"""A level that always succeeds or always fails has no finite coefficient; its deviance is 0 to the last digit here."""

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
    if len({correct for _, correct in outcomes}) < 2:
        return None
    null = _deviance(outcomes, ())
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
    """Minus twice the greatest log-likelihood of a logistic model with an effect for each level of these factors."""
    scipy_stats()
    import numpy as np
    from scipy import optimize

    levels = sorted({(factor, row[factor]) for row, _ in outcomes for factor in factors}, key=repr)
    columns = [[row[factor] == level for row, _ in outcomes] for factor, level in levels]
    design = np.array([[True] * len(outcomes), *columns], float).T
    signs = np.array([1.0 if correct else -1.0 for _, correct in outcomes])

    def deviance(effects: Any) -> tuple[float, Any]:
        """The deviance of these effects, and its gradient."""
        logits = signs * (design @ effects)
        misses = np.exp(-np.logaddexp(0.0, logits))
        return 2 * float(np.logaddexp(0.0, -logits).sum()), -2 * design.T @ (signs * misses)

    fit = optimize.minimize(
        deviance,
        np.zeros(design.shape[1]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-LOGIT_LIMIT, LOGIT_LIMIT)] * design.shape[1],
        options={"ftol": 1e-14, "gtol": 1e-9, "maxiter": 1000},
    )
    return float(fit.fun)
