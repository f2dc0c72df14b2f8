"""Means, shares and expected best of speedups against brute force."""

from __future__ import annotations

import itertools
import math
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import Verdict
from sessions.metrics.speedup import (
    SpeedupDefinition,
    expected_best,
    fast_p,
    share_slower,
    speedup_at_each_k,
    speedup_geomean,
    speedup_mean,
)
from sessions.state.speed import Speed
from tests.support.sessions.rows import row

WRONG = row(verdict=Verdict.WRONG)
SPEEDUPS = st.lists(st.floats(0.01, 100), min_size=1, max_size=7)


def test_each_definition_reads_its_own_figure() -> None:
    rows = [
        row(speed=Speed(2.0), geak=3.0, sum_ratio=4.0),
        row(speed=Speed(8.0, weighted=True), geak=5.0, sum_ratio=None),
        WRONG,
    ]
    assert speedup_mean(rows) == speedup_mean(rows, SpeedupDefinition.GEAK) == 4.0
    assert speedup_geomean(rows) == pytest.approx(4.0)
    assert speedup_mean(rows, SpeedupDefinition.SUMS) == 4.0
    assert speedup_mean(rows, SpeedupDefinition.TIME_WEIGHTED) == 8.0
    assert speedup_mean([WRONG]) is speedup_geomean([]) is None


def test_means_of_several_provenances_are_unknown() -> None:
    rows = [row(speedup=2.0, provenance=(product,)) for product in ("MI300X", "H100")]
    assert speedup_mean(rows) is speedup_geomean(rows) is fast_p(rows, 1.0) is None
    assert speedup_at_each_k(rows) == []
    assert fast_p(rows, 0) == 1.0


@given(st.lists(st.one_of(st.none(), st.floats(0.1, 10)), max_size=8), st.floats(0.1, 10))
@settings(max_examples=30)
def test_fast_p_counts_correct_and_faster_rows(speedups: list[float | None], p: float) -> None:
    rows = [WRONG if speedup is None else row(speedup=speedup) for speedup in speedups]
    expected = fmean([speedup is not None and speedup > p for speedup in speedups]) if speedups else None
    assert fast_p([*rows, row(verdict=Verdict.CANCELLED)], p) == expected


def test_fast_p_is_strict_and_unknown_if_a_speedup_is() -> None:
    assert fast_p([row(speedup=2.0), WRONG], 2.0) == 0.0
    assert fast_p([row(), row(speedup=2.0)], 1.0) is None
    assert fast_p([row(), WRONG], 0) == 0.5


@given(SPEEDUPS, st.data())
@settings(max_examples=30)
def test_expected_best_is_the_mean_over_all_draws(speedups: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(speedups)))
    draws = list(itertools.combinations(speedups, k))
    assert expected_best(speedups, k) == pytest.approx(math.fsum(map(max, draws)) / len(draws))


def test_expected_best_of_more_than_there_are_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        expected_best([1.0], 2)


def test_speedup_at_k_takes_the_best_of_an_instance_and_zero_for_a_failed_one() -> None:
    rows = [row(instance=1, number=1, speedup=1.0), row(instance=1, number=2, speedup=3.0)]
    rows.append(row(instance=2, verdict=Verdict.WRONG))
    assert speedup_at_each_k(rows) == [1.5, 3.0]
    assert speedup_at_each_k([*rows, row(instance=3)]) == []


def test_share_slower_counts_timed_rows_alone() -> None:
    assert share_slower([row(speedup=0.9), row(speedup=1.0), row(), WRONG]) == 0.5
    assert share_slower([WRONG]) is None
