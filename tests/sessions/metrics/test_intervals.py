"""Intervals against published tables, and the bootstrap against its promise."""

from __future__ import annotations

import random
import re
import sys
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.errors import ExtraMissing
from sessions.metrics.intervals import bootstrap_interval, wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_matches_newcombe(successes: int, trials: int, low: float, high: float) -> None:
    """Newcombe, Statistics in Medicine 17, 1998, 857-872, table I, method 3."""
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 50), st.data())
def test_wilson_interval_contains_the_share(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    low, high = wilson_interval(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1


def test_zero_trials_give_no_interval() -> None:
    assert wilson_interval(0, 0) is None
    with pytest.raises(ValueError, match="is not a share"):
        wilson_interval(3, 2)


def test_bootstrap_of_a_skewed_mean_covers_it_as_often_as_promised() -> None:
    generator = random.Random(1)
    covered = 0
    for _ in range(120):
        sample = [generator.expovariate(1.0) for _ in range(40)]
        low, high = bootstrap_interval(sample, fmean, draws=200)
        covered += low <= 1.0 <= high
    assert 0.88 <= covered / 120 <= 0.99


def test_bootstrap_of_few_tasks_is_the_share_of_all_draws() -> None:
    """All 27 draws of three tasks: the 2.5 % and 97.5 % quantiles of their means are the extremes."""
    low, high = bootstrap_interval([1.0, 2.0, 3.0], fmean, draws=4000)
    assert (low, high) == (1.0, 3.0)


def test_bootstrap_depends_on_its_seed_alone() -> None:
    generator = random.Random(3)
    values = [generator.random() for _ in range(20)]
    assert bootstrap_interval(values, fmean, seed=5) == bootstrap_interval(values, fmean, seed=5)
    assert bootstrap_interval(values, fmean, seed=5) != bootstrap_interval(values, fmean, seed=6)


def test_bootstrap_of_one_task_has_no_interval_and_equal_tasks_have_their_value() -> None:
    assert bootstrap_interval([1.0], fmean) is None
    assert bootstrap_interval([1.0, 1.0], fmean) == (1.0, 1.0)


def test_figure_without_scipy_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ExtraMissing, match=re.escape("pip install 'wavedeck[reports]'")):
        bootstrap_interval([1.0, 2.0], fmean)
    assert wilson_interval(1, 29) is not None, "the cockpit shows it"
