"""Protects the ratio of latencies on simulated processes with known bias: false positives, power and coverage."""

from __future__ import annotations

import math
import random
import statistics
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.results.latency import Bound, Outcome
from harness.wire.results.ratios import (
    FLOORS,
    PAIRS_A_LOOK,
    CaseRatios,
    Ratio,
    case_ratios,
    find_bound,
    mean_ratio,
    median_error,
    ratio,
    without_floor,
)

Sides = tuple[list[list[float]], list[list[float]]]


def simulated(seed: int, *, truth: float = 1.0, pairs: int = PAIRS_A_LOOK) -> Sides:
    """A slow side and a fast side with the ratio `truth`; each process has a bias, each sample has noise."""
    generator = random.Random(seed)

    def side(ms: float) -> list[list[float]]:
        return [process(ms * math.exp(generator.gauss(0, 0.01))) for _ in range(pairs)]

    def process(ms: float) -> list[float]:
        return [ms * (1 + abs(generator.gauss(0, 0.005))) for _ in range(6)]

    return side(truth), side(1.0)


def ratio_with_second_look(seed: int, *, truth: float = 1.0) -> Ratio:
    """The clock's procedure: twice the pairs if the first interval is wide."""
    slow, fast = simulated(seed, truth=truth, pairs=2 * PAIRS_A_LOOK)
    first = ratio(slow[:PAIRS_A_LOOK], fast[:PAIRS_A_LOOK])
    return first if first.is_resolved else ratio(slow, fast)


def test_equal_kernels_are_rarely_called_different() -> None:
    outcomes = [ratio_with_second_look(seed).outcome for seed in range(250)]
    assert outcomes.count(Outcome.FASTER) <= 10  # one side of a 95 % interval: 2.5 % of 250 on average
    assert outcomes.count(Outcome.SLOWER) <= 10


def test_speedup_of_a_tenth_is_found() -> None:
    outcomes = [ratio_with_second_look(1000 + seed, truth=1.1).outcome for seed in range(100)]
    assert outcomes.count(Outcome.FASTER) >= 95
    assert outcomes.count(Outcome.SLOWER) == 0


@pytest.mark.parametrize("pairs", [PAIRS_A_LOOK, pytest.param(2 * PAIRS_A_LOOK, marks=pytest.mark.soak)])
@pytest.mark.parametrize("truth", [0.7, 1.3])
def test_interval_covers_the_true_ratio(pairs: int, truth: float) -> None:
    ratios = [ratio(*simulated(seed, truth=truth, pairs=pairs)) for seed in range(200)]
    covered = sum(result.low <= truth <= result.high for result in ratios)
    assert covered >= 0.95 * 200


def test_outlying_process_widens_the_interval() -> None:
    slow, fast = [[1.0] * 500, [1.0] * 500, [1.5] * 500], [[1.0] * 500] * 3
    result = ratio(slow, fast)
    assert result.low < 1 < result.high
    assert result.outcome is Outcome.NOT_RESOLVED


SAMPLES = st.lists(st.floats(0.1, 10), min_size=1, max_size=9)
PAIRS = st.lists(st.tuples(SAMPLES, SAMPLES), min_size=2, max_size=6)
FACTORS = st.floats(1e-3, 1e3)


def sides_of(pairs: list[tuple[list[float], list[float]]]) -> Sides:
    return [slow for slow, _ in pairs], [fast for _, fast in pairs]


def scaled(side: list[list[float]], factor: float) -> list[list[float]]:
    return [[factor * sample for sample in samples] for samples in side]


def ends(result: Ratio) -> tuple[float, float, float]:
    return result.low, result.value, result.high


@given(seed=st.integers(0, 1 << 16), truth=st.floats(0.2, 5), pairs=st.integers(2, 6))
def test_swapped_sides_give_the_inverse_ratio(seed: int, truth: float, pairs: int) -> None:
    slow, fast = simulated(seed, truth=truth, pairs=pairs)
    result, inverse = ratio(slow, fast), ratio(fast, slow)
    assert inverse.value == pytest.approx(1 / result.value)
    # The bootstrap draws differently, so the interval's ends move a little.
    assert (1 / inverse.high, 1 / inverse.low) == pytest.approx((result.low, result.high), rel=0.01)


@given(pairs=PAIRS, unit=FACTORS, factor=FACTORS)
def test_unit_of_time_changes_no_ratio_and_a_slower_side_scales_it(
    pairs: list[tuple[list[float], list[float]]], unit: float, factor: float
) -> None:
    slow, fast = sides_of(pairs)
    result = ratio(slow, fast)
    assert ends(ratio(scaled(slow, unit), scaled(fast, unit))) == pytest.approx(ends(result))
    assert ends(ratio(scaled(slow, factor), fast)) == pytest.approx([factor * end for end in ends(result)])


@given(pairs=PAIRS)
def test_interval_contains_the_value_and_reaches_as_far_on_both_sides(
    pairs: list[tuple[list[float], list[float]]],
) -> None:
    slow, fast = sides_of(pairs)
    result = ratio(slow, fast)
    assert result.low <= result.value * (1 + 1e-12)
    assert result.value <= result.high * (1 + 1e-12)
    logs = [math.log(statistics.median(a) / statistics.median(b)) for a, b in pairs]
    assert math.log(result.value) == pytest.approx(statistics.fmean(logs), abs=1e-9)
    student = {2: 25.45, 3: 6.205, 4: 4.176, 5: 3.495, 6: 3.163}[len(logs)]  # of 97.5 %, two-sided
    reach = student * statistics.stdev(logs) / math.sqrt(len(logs))
    assert math.log(result.high / result.value) >= reach - 1e-9
    assert math.log(result.value / result.low) >= reach - 1e-9


@given(
    cases=st.lists(PAIRS, min_size=1, max_size=4),
    weights=st.lists(st.floats(0.1, 10), min_size=4, max_size=4),
    unit=FACTORS,
)
def test_mean_over_cases_lies_between_them_and_between_its_ends(
    cases: list[list[tuple[list[float], list[float]]]], weights: list[float], unit: float
) -> None:
    ratios = [case_ratios(*sides_of(pairs)) for pairs in cases]
    shares = weights[: len(cases)]
    values = [mean_ratio([case]).value for case in ratios]
    geometric, arithmetic = mean_ratio(ratios), mean_ratio(ratios, arithmetic=True)
    weighted = mean_ratio(ratios, weights=shares)
    for mean in (geometric, arithmetic, weighted):
        assert min(values) * (1 - 1e-9) <= mean.value <= max(values) * (1 + 1e-9)
        assert mean.low <= mean.value * (1 + 1e-9)
        assert mean.value <= mean.high * (1 + 1e-9)
    assert geometric.value <= arithmetic.value * (1 + 1e-9)
    times = math.fsum(weight / value for weight, value in zip(shares, values, strict=True))
    assert weighted.value == pytest.approx(math.fsum(shares) / times)
    in_unit = mean_ratio(ratios, weights=[unit * share for share in shares])
    assert ends(in_unit) == pytest.approx(ends(weighted))


def test_error_of_a_median_is_the_spread_of_medians() -> None:
    generator = random.Random(0)
    drawn = [[generator.gauss(1.0, 0.01) for _ in range(25)] for _ in range(400)]
    spread = statistics.stdev(map(statistics.median, drawn))
    assert statistics.fmean(map(median_error, drawn)) == pytest.approx(spread, rel=0.15)
    assert median_error([1.0]) == median_error([]) == math.inf, "one sample says nothing"


TRUTHS = (0.8, 1.5, 4.0, 1.1)


@cache
def cases_with_common_bias(seed: int) -> list[CaseRatios]:
    """Cases with a common error: in a pair all ratios are off by the same factor."""
    generator = random.Random(seed)
    biases = [math.exp(generator.gauss(0, 0.02)) for _ in range(PAIRS_A_LOOK)]

    def samples(ms: float) -> list[float]:
        return [ms * (1 + abs(generator.gauss(0, 0.005))) for _ in range(6)]

    return [
        case_ratios([samples(truth * bias) for bias in biases], [samples(1.0) for _ in biases], seed=number)
        for number, truth in enumerate(TRUTHS)
    ]


@pytest.mark.parametrize(
    ("mean", "truth"),
    [
        ({}, math.prod(TRUTHS) ** 0.25),
        ({"arithmetic": True}, sum(TRUTHS) / 4),
        ({"weights": (6, 2, 1, 1)}, 10 / (6 / 0.8 + 2 / 1.5 + 1 / 4.0 + 1 / 1.1)),
    ],
)
def test_interval_of_a_mean_over_cases_covers_bias_common_to_cases(
    mean: dict[str, Any], truth: float
) -> None:
    means = [mean_ratio(cases_with_common_bias(seed), **mean) for seed in range(100)]
    assert sum(mean.low <= truth <= mean.high for mean in means) >= 95
    alone = [mean_ratio([case]).half_width for case in cases_with_common_bias(0)]
    assert means[0].half_width > 0.9 * min(alone), "more cases do not make a common bias smaller"


def test_mean_over_cases_whose_errors_cancel_is_narrow() -> None:
    up = case_ratios([[2.0], [2.2], [2.42]], [[1.0]] * 3)
    down = case_ratios([[2.42], [2.2], [2.0]], [[1.0]] * 3)
    assert mean_ratio([up]).half_width > 0.3
    assert mean_ratio([up, down]).interval == pytest.approx((2.2, 2.2))


@given(slow_ms=FACTORS, fast_ms=FACTORS, floor_ms=FACTORS)
def test_ratio_without_the_floor(slow_ms: float, fast_ms: float, floor_ms: float) -> None:
    both = slow_ms + floor_ms, fast_ms + floor_ms
    speedup = both[0] / both[1]
    assert without_floor(speedup, *both, floor_ms) == pytest.approx(slow_ms / fast_ms, rel=1e-6)
    assert without_floor(speedup, *both, 0.0) == speedup
    assert without_floor(speedup, *both, both[1]) is None, (
        "the candidate takes no longer than an empty kernel"
    )


@pytest.mark.parametrize(
    ("slow", "fast"), [([], []), ([[1.0]], [[1.0]]), ([[1.0], [1.0]], [[1.0]]), ([[1.0]], [[1.0], [1.0]])]
)
def test_fewer_than_two_pairs_give_no_ratio(slow: list[list[float]], fast: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="two or more pairs"):
        ratio(slow, fast)


@given(slow_ms=FACTORS, fast_ms=FACTORS, floor_ms=FACTORS, unit=FACTORS)
def test_bound_has_no_unit_and_turns_with_the_sides(
    slow_ms: float, fast_ms: float, floor_ms: float, unit: float
) -> None:
    turned = {Bound.AT_LEAST: Bound.AT_MOST, Bound.AT_MOST: Bound.AT_LEAST}
    for method, floors in FLOORS.items():
        bound = find_bound(slow_ms, fast_ms, floor_ms, method)
        assert find_bound(fast_ms, slow_ms, floor_ms, method) is turned.get(bound, bound)  # type: ignore[arg-type]
        if min(abs(ms / (floors * floor_ms) - 1) for ms in (slow_ms, fast_ms)) > 1e-9:
            assert find_bound(unit * slow_ms, unit * fast_ms, unit * floor_ms, method) is bound
