"""Means, shares and expected best of speedups against brute force."""

from __future__ import annotations

import itertools
import math
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.metrics.speedup import expected_best, fast_p, geomean_speedup, mean_speedup

SPEEDUPS = st.lists(st.floats(0.01, 100), min_size=1, max_size=7)


def test_means_of_no_speedups_are_unknown() -> None:
    assert mean_speedup([2.0, 8.0]) == 5.0
    assert geomean_speedup([2.0, 8.0]) == pytest.approx(4.0)
    assert mean_speedup([]) is geomean_speedup([]) is None


@given(st.lists(st.floats(0.0, 10)), st.floats(0.1, 10))
@settings(max_examples=30)
def test_fast_p_counts_faster_samples(speedups: list[float], p: float) -> None:
    assert fast_p(speedups, p) == (fmean([speedup > p for speedup in speedups]) if speedups else None)


def test_fast_p_is_strict_and_unknown_if_a_speedup_is() -> None:
    assert fast_p([2.0, 0.0], 2.0) == 0.0
    assert fast_p([None, 2.0], 1.0) is fast_p([math.nan], 1.0) is None


@given(SPEEDUPS, st.data())
@settings(max_examples=30)
def test_expected_best_is_the_mean_over_all_draws(speedups: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(speedups)))
    draws = list(itertools.combinations(speedups, k))
    assert expected_best(speedups, k) == pytest.approx(math.fsum(map(max, draws)) / len(draws))


def test_expected_best_of_more_than_there_are_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        expected_best([1.0], 2)
