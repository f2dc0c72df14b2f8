"""Logistic attribution on planted data, and the quality of code."""

from __future__ import annotations

import math

import pytest

from harness import Verdict
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.attribution import explained_deviance
from sessions.metrics.training_rows import maintainability_of
from tests.support.sessions.rows import row

FACTORS = {"category": lambda attempt: attempt.suite, "method": lambda attempt: attempt.method}


def outcomes(shares: dict[tuple[str, str], tuple[int, int]]) -> list[AttemptRow]:
    """Rows by (category, method), given (correct, all)."""
    return [
        row(f"{category}/x", method=method, verdict=Verdict.CORRECT if place < correct else Verdict.WRONG)
        for (category, method), (correct, count) in shares.items()
        for place in range(count)
    ]


def likelihood(correct: int, count: int) -> float:
    share = correct / count
    return sum(n * math.log(p) for n, p in ((correct, share), (count - correct, 1 - share)) if n)


def test_factor_alone_explains_what_its_own_shares_do() -> None:
    rows = outcomes({("a", "m"): (9, 10), ("a", "n"): (7, 10), ("b", "m"): (3, 10), ("b", "n"): (2, 10)})
    explained = explained_deviance(rows, FACTORS)
    null = likelihood(21, 40)
    assert explained.outcomes == 40
    assert explained.alone["category"] == pytest.approx(1 - (likelihood(16, 20) + likelihood(5, 20)) / null)
    assert explained.alone["method"] == pytest.approx(1 - (likelihood(12, 20) + likelihood(9, 20)) / null)


def test_model_of_both_factors_is_the_maximum_likelihood() -> None:
    """Brute force: the best of a fine grid of three coefficients is not better than the fit."""
    shares = {("a", "m"): (9, 10), ("a", "n"): (6, 12), ("b", "m"): (3, 9), ("b", "n"): (2, 10)}
    explained = explained_deviance(outcomes(shares), FACTORS)
    successes, trials = map(sum, zip(*shares.values(), strict=True))

    def log_likelihood(base: float, category: float, method: float) -> float:
        total = 0.0
        for (of_category, of_method), (correct, count) in shares.items():
            logit = base + category * (of_category == "b") + method * (of_method == "n")
            share = 1 / (1 + math.exp(-logit))
            total += correct * math.log(share) + (count - correct) * math.log(1 - share)
        return total

    best = max(
        log_likelihood(base / 5, category / 5, method / 5)
        for base in range(16)
        for category in range(-20, 1)
        for method in range(-10, 6)
    )
    share = 1 - best / likelihood(successes, trials)
    assert share <= explained.together <= share + 5e-3
    assert explained.added["category"] == pytest.approx(explained.together - explained.alone["method"])


def test_category_that_always_fails_leaves_no_deviance_of_its_own() -> None:
    rows = outcomes({("a", "m"): (10, 10), ("a", "n"): (10, 10), ("b", "m"): (0, 10), ("b", "n"): (0, 10)})
    explained = explained_deviance(rows, FACTORS)
    assert explained.together == pytest.approx(explained.alone["category"]) == pytest.approx(1.0)
    assert explained.alone["method"] == pytest.approx(0.0)


def test_equal_outcomes_leave_nothing_to_explain() -> None:
    assert explained_deviance([row(), row()], FACTORS) is None
    assert explained_deviance([], FACTORS) is None


def test_quality_of_a_candidate_falls_with_its_branches() -> None:
    plain = maintainability_of("def f(x):\n    return x + 1\n")
    branched = maintainability_of(
        "def f(x):\n" + "".join(f"    if x == {n}:\n        x += {n}\n" for n in range(12))
    )
    assert 0 < branched < plain <= 100
    assert maintainability_of("def f(:\n") is None
    assert maintainability_of("a\0b") is None
